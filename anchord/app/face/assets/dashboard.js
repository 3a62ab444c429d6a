// Nothing on a page needs this. It shows new events as they are signed, and numbers as they change.
const AGAIN_MS = 60000;
const list = document.querySelector("[data-events]");
const said = document.querySelector("#live");
let fetching = false;

function say(words) {
  if (said && said.textContent !== words) said.textContent = words;
}

// Made as happenings.html makes it; all text is text, whatever it says.
function entry(event) {
  const item = document.createElement("li");
  const time = document.createElement("time");
  time.dateTime = event.created_at;
  time.textContent = event.created_at.replace("T", " ").replace("Z", "");
  const what = document.createElement("span");
  what.className = "what";
  what.textContent = event.words;
  const link = document.createElement("a");
  link.className = "mono";
  link.href = list.dataset.root + event.path;
  link.textContent = event.record;
  item.className = "new";
  item.append(time, " ", what, " ", link);
  setTimeout(() => { item.className = ""; }, 4000);
  return item;
}

function add(event) {
  if (event.seq <= Number(list.dataset.after)) return;
  list.dataset.after = event.seq;
  document.querySelector("#none")?.remove();
  list.prepend(entry(event));
  while (list.children.length > Number(list.dataset.events)) list.lastElementChild.remove();
}

// The page itself is what has the numbers: it is asked for again, and what differs is put in place.
async function refresh(number) {
  const parts = [...document.querySelectorAll("[data-live]")];
  if (fetching || !parts.some((part) => part.dataset.live !== number)) return;
  fetching = true;
  try {
    const answer = await fetch(location.href, { cache: "no-store", headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts) replace(part, page.getElementById(part.id));
  } catch {
    // Away for a moment: the next message tries again.
  } finally {
    fetching = false;
  }
}

function replace(part, fresh) {
  if (!fresh || part.contains(document.activeElement)) return;
  for (const details of part.querySelectorAll("details[open]")) {
    fresh.querySelector(`details[id="${details.id}"]`)?.setAttribute("open", "");
  }
  part.replaceWith(document.adoptNode(fresh));
}

function follow() {
  const source = new EventSource(`${list.dataset.root}events.stream?after=${list.dataset.after}`);
  source.addEventListener("open", () => say("Live: new events appear as they are signed."));
  source.addEventListener("ledger", (message) => add(JSON.parse(message.data)));
  source.addEventListener("figures", (message) => refresh(message.data));
  source.addEventListener("skipped", (message) => say(`Live. ${message.data} events came too fast to be shown.`));
  source.addEventListener("error", () => {
    say("The connection is lost; it is tried again.");
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, AGAIN_MS);
  });
  addEventListener("pagehide", () => source.close(), { once: true });
}

addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
if (list && "EventSource" in window) follow();
