// Nothing on a page needs this. It adds copy buttons to whatever says that it may be copied.
"use strict";

for (const source of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  const words = source.dataset.copy || "Copy";
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", words);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
    said.textContent = button.textContent;
    setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; }, 2000);
  });
  source.closest("pre")?.before(button) ?? source.after(button);
}

const said = document.createElement("p");
said.className = "hidden";
said.setAttribute("role", "status");
document.body.append(said);
