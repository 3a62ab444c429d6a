// Nothing on a page needs this. It adds copy buttons to what says that it may be copied.
"use strict";

const said = document.createElement("p");
said.className = "hidden";
said.setAttribute("role", "status");
document.body.append(said);

for (const source of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", source.dataset.copy);
  button.addEventListener("click", () => copy(source, button));
  const block = source.closest("pre");
  if (block) {
    const box = document.createElement("div");
    box.className = "boxed";
    block.replaceWith(box);
    box.append(button, block);
  } else {
    source.after(button);
  }
}

async function copy(source, button) {
  let done = "Copied";
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    // Pages without TLS may not write to the clipboard: the text is selected for the keyboard.
    getSelection().selectAllChildren(source);
    done = "Selected";
  }
  button.textContent = said.textContent = done;
  setTimeout(() => {
    button.textContent = "Copy";
    said.textContent = "";
  }, 2000);
}
