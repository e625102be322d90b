// Brings what is new into view, once, unless it is there or the page is touched before: the card of what was uploaded, which stands
// above the form that was used; on a phone the lists that an edit of the history changed. Of a row of tabs the open one is brought
// into the row's view; the page stays where it is.
const STEP = 100 // ms between two looks
const LOOKED = 15_000 // ms that it may take to be drawn
const IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'
const brought = new Set()

const centre = tab => {
  const row = tab.closest("[role=tablist]")
  const [at, around] = [tab.getBoundingClientRect(), row.getBoundingClientRect()]
  row.scrollLeft += at.left + at.width / 2 - around.left - around.width / 2
}

export default function ({ data }) {
  const { around, tab, once } = data
  if (brought.has(once)) return
  const until = performance.now() + LOOKED
  const watching = setInterval(() => {
    if (performance.now() > until) return clearInterval(watching)
    const place = document.querySelector(`.st-key-${CSS.escape(around)}${tab ? " [role=tab][aria-selected=true]" : ""}`)
    if (!place || !document.querySelector(IDLE)) return
    stop()
    if (tab) return centre(place)
    const { top, bottom } = place.getBoundingClientRect()
    if (top < window.innerHeight / 2 && bottom > window.innerHeight / 2) return
    place.style.scrollMarginTop = "4.5rem" // the page's own head stays above it
    place.scrollIntoView({ block: "start" })
  }, STEP)
  const stop = () => {
    clearInterval(watching)
    if (!tab) brought.add(once)
  }
  document.addEventListener("pointerdown", stop, { capture: true, once: true })
}
