// Reports the item whose title is clicked in a framed page, which has no script of its own; the page that comes next opens where this
// one was read.
let report = null
let top = null
let frames = ""

const click = event => {
  const id = event.target.closest?.("[data-item]")?.dataset.item
  if (id === undefined) return
  top = event.view.scrollY
  report("act", { do: "select", id })
}
const listen = frame => frame.contentDocument?.addEventListener("click", click)
const loaded = event => {
  if (!event.target.matches?.(frames)) return
  listen(event.target)
  if (top !== null) event.target.contentWindow.scrollTo(0, top)
  top = null
}

export default function ({ data, setTriggerValue }) {
  report = setTriggerValue
  frames = `.st-key-${data.around} iframe`
  document.querySelectorAll(frames).forEach(listen)
  document.addEventListener("load", loaded, true)
  return () => document.removeEventListener("load", loaded, true)
}
