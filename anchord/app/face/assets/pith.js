// Nothing on a page needs this. It adds copy buttons to what says that it may be copied.
"use strict";

const said = document.createElement("p");
said.className = "hidden";
said.setAttribute("role", "status");
document.body.append(said);

if (location.protocol.startsWith("http")) {
  // A page without an address of its own is read at one, and that is what a shell should ask.
  for (const code of document.querySelectorAll("pre code")) {
    code.textContent = code.textContent.replace(/^(BASE=\$\{BASE:-)[^}]*\}/, `$1${location.origin}}`);
  }
}

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
