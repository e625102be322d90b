// Gives the focus back that a step of the keyboard lost, lets Enter take the first result of a search, arrows reach the others and
// Tab what a button opens, shows a section that is opened from its beginning, keeps what was clicked in its place when the details
// of an item open beside the page or close, lets a finger select in figures, and tells the app when the window is as narrow as a
// phone's, or no more, and when the connection is back.
const STEP = 100 // ms between two looks
const LOOKED = 15_000 // ms after the answer to a step, or without any, that the focus may be lost
const IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'
const NARROW = matchMedia("(max-width: 640px)")
const ABLE = "button:not(:disabled), input:not(:disabled), summary, [role=combobox], [tabindex='0']"

// Plotly asks for four samples of each pixel of a WebGL canvas, though the shader that draws its points smooths their edges. Where no GPU
// draws, they take most of the time of a frame, and all of them are drawn again whenever a map is zoomed.
const context = HTMLCanvasElement.prototype.getContext
if (!window.seqscopeCanvas) {
  window.seqscopeCanvas = true
  HTMLCanvasElement.prototype.getContext = function (kind, settings) {
    const plotly = settings && this.classList.contains("gl-canvas")
    return context.call(this, kind, plotly ? { ...settings, antialias: false } : settings)
  }
}

// To open another page, Streamlit first writes that page's parameters behind the path of the one it leaves, as an entry of its
// own: the back button led there, and the page had forgotten what was chosen on it. Where the click cuts a run short, it opens the
// page without parameters instead, which the page then writes: the button led to that page again. Between the two nothing is pressed.
const LEFT = 3_000 // ms from the first of them to that of the page that opens
if (!window.seqscopeHistory) {
  window.seqscopeHistory = true
  let [added, when, opened] = ["", 0, false] // the latest entry, its time, and whether it opened another page
  history.pushState = function (state, title, url) {
    const to = new URL(url ?? "", location.href)
    const leaves = to.pathname !== location.pathname
    const bare = opened && !leaves && !location.search
    const behind = !opened && leaves && to.search === location.search && performance.now() - when < LEFT
    const passing = added === location.href && (bare || behind)
    History.prototype[passing ? "replaceState" : "pushState"].call(this, state, title, url)
    added = to.href
    when = performance.now()
    opened = leaves
  }
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => (added = ""), true)
}

let before = null // ends what ran before: Streamlit calls this again when the data or the theme change, and does not stop it

export default function ({ data, setStateValue, setTriggerValue }) {
  before?.()
  let watching = null

  // The keys of the containers around an element, the nearest first.
  const around = element => {
    const keys = []
    for (let at = element; at; at = at.parentElement)
      for (const name of at.classList ?? []) if (name.startsWith("st-key-")) keys.push(name)
    return keys
  }
  // A button with help is there twice, once for phones.
  const ables = place =>
    (place?.matches(ABLE) ? [place] : [...(place?.querySelectorAll(ABLE) ?? [])]).filter(other => other.checkVisibility())
  // Where what had the focus is there and can have it no more, what stands before it; where it went from among others, what stands
  // at its number there; where nothing around it is left, the dialog or the page.
  const refocus = (keys, number) => {
    let disabled = null
    for (const key of keys) {
      const near = key.endsWith("_hits") ? [key.replace(/_hits$/, "_search"), key] : [key]
      for (const name of near) {
        const place = document.querySelector(`.${CSS.escape(name)}`)
        const able = ables(place)
        const before = able.filter(other => disabled?.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_PRECEDING)
        const there = name === keys[0] ? able[Math.min(number, able.length - 1)] : null
        if (able.length) return (before.at(-1) ?? there ?? able[0]).focus({ preventScroll: true })
        disabled ??= place
      }
    }
    const last = document.querySelector("[role=dialog]") ?? document.getElementById("stMain")
    last?.focus({ preventScroll: true })
  }
  const stop = () => clearInterval(watching)
  const watch = keys => {
    stop()
    let until = performance.now() + LOOKED
    const number = ables(document.querySelector(`.${CSS.escape(keys[0])}`)).indexOf(document.activeElement)
    watching = setInterval(() => {
      const idle = document.querySelector(IDLE)
      if (!idle) until = performance.now() + LOOKED // an estimate takes longer
      if (performance.now() > until) return stop()
      const now = document.activeElement
      if (now && now !== document.body) return
      if (idle) refocus(keys, number)
    }, STEP)
  }
  // The first result of this very text, as soon as it is there (item_picker.hits_of).
  const take = (name, text, keys) => {
    stop()
    const until = performance.now() + LOOKED
    const hex = [...new TextEncoder().encode(text)].map(byte => byte.toString(16).padStart(2, "0")).join("")
    watching = setInterval(() => {
      if (performance.now() > until) return stop()
      const first = document.querySelector(`.${name}_hits_of_${hex} button`)
      if (!first || !document.querySelector(IDLE)) return
      stop()
      first.click()
      watch(keys)
    }, STEP)
  }

  // Down from a search to its results, up and down among them.
  const step = event => {
    const at = event.target
    const name = around(at).find(key => /_(search|hits)$/.test(key))?.replace(/_(search|hits)$/, "")
    if (!name) return
    const hits = [...document.querySelectorAll(`.${CSS.escape(`${name}_hits`)} [data-testid="stBaseButton-tertiary"]`)]
    const place = hits.indexOf(at) + (event.key === "ArrowDown" ? 1 : -1)
    if (!hits.length || (place < 0 && !hits.includes(at))) return
    event.preventDefault()
    const next = place < 0 ? document.querySelector(`.${CSS.escape(`${name}_search`)} input`) : hits[place]
    next?.focus()
  }

  // What a button opens stands at the end of the document: Tab leads into it, and out of it to what follows the button.
  const reached = root =>
    [...root.querySelectorAll("*")]
      .flatMap(element => [element, ...(element.shadowRoot ? reached(element.shadowRoot) : [])])
      .filter(element => element.tabIndex >= 0 && !element.disabled && element.getClientRects().length)
  const through = event => {
    const opener = document.querySelector('[data-testid="stPopoverButton"][aria-expanded="true"]')
    const reachable = reached(document.querySelector('[data-testid="stPopoverBody"]') ?? new DocumentFragment())
    const at = event.composedPath()[0]
    if (!opener || !reachable.length) return
    const last = reachable.at(-1)
    if (at === opener && !event.shiftKey) reachable[0].focus()
    else if (at === reachable[0] && event.shiftKey) opener.focus()
    else {
      // of a group the arrow keys reach the others; the browser goes on from the button
      if (event.shiftKey || (at !== last && !at.closest("[role=toolbar], [role=radiogroup]")?.contains(last))) return
      opener.focus()
      return event.stopPropagation()
    }
    event.preventDefault()
  }

  const down = event => {
    stop()
    if (event.key === "Tab") return through(event)
    if (event.key === "ArrowDown" || event.key === "ArrowUp") return step(event)
    if (event.key !== "Enter" && event.key !== " ") return
    const at = event.target
    // a menu stands at the end of the document, away from its button
    const keys = around(at.closest("[role=menu]") ? document.querySelector("button[aria-haspopup][aria-expanded=true]") : at)
    const search = keys[0]?.match(/^(st-key-.+)_search$/)
    // details of a hit would cover the others on a phone: its keyboard goes, and the hits are in view
    if (search?.[1].endsWith("catalogue") && event.key === "Enter" && NARROW.matches) return at.blur()
    if (at.matches?.("input") && search && event.key === "Enter" && at.value.trim()) take(search[1], at.value.trim(), keys)
    else if (keys.length && !at.matches?.("input[type=text], input[type=search], textarea")) watch(keys)
  }
  // A section that is opened from far down in another one begins at its beginning. It may be short: below it is as much room as
  // leaves the row of tabs where it was, until the page is scrolled up.
  const SECTIONS = '[data-testid="stTabs"]'
  const tabs = event => {
    const row = event.target.closest?.("[role=tablist]")
    const section = row?.closest(SECTIONS)
    return section && (event.type !== "keydown" || /^(Arrow|Home|End)/.test(event.key)) ? { row, section } : null
  }
  const room = section => {
    const main = document.querySelector("[data-testid=stMain]")
    const [row, open] = [section.querySelector("[role=tablist]"), section.querySelector("[role=tabpanel]")]
    if (!main || !row || !open) return null
    const end = main.getBoundingClientRect()
    const below = main.scrollHeight - main.scrollTop + end.top - open.getBoundingClientRect().bottom
    return Math.max(0, end.bottom - row.getBoundingClientRect().bottom - below)
  }
  const keep = (section, height) => section.style.setProperty("--room", `${height}px`)
  const opening = event => {
    const at = tabs(event)
    if (at) keep(at.section, room(at.section) ?? 0)
  }
  const opened = event => {
    const at = tabs(event)
    if (at && at.section.getBoundingClientRect().top < at.row.getBoundingClientRect().top) at.section.scrollIntoView({ block: "start" })
  }
  const release = () => {
    for (const section of document.querySelectorAll(SECTIONS)) {
      const [height, needed] = [parseFloat(section.style.getPropertyValue("--room")), room(section)]
      if (height && needed !== null && needed < height) keep(section, needed)
    }
  }
  // The page is narrower beside the details, and what stands above what was clicked is longer then.
  const panel = () => document.querySelector(".st-key-item_panel")
  let clicked = null // {at, root, name, top}; root and name: where it is found once its component has drawn it anew
  let beside = false
  const where = ({ at, root, name }) => {
    const now = at.isConnected ? at : name ? root.querySelector?.(`[aria-label="${CSS.escape(name)}"]`) : null
    return now?.getBoundingClientRect().top
  }
  const reflowed = new ResizeObserver(() => {
    if (beside === !!panel()) return
    beside = !beside
    const top = clicked && where(clicked)
    const seen = clicked && clicked.top >= 0 && clicked.top < window.innerHeight
    if (seen && top !== undefined) document.querySelector("[data-testid=stMain]")?.scrollBy({ top: top - clicked.top, behavior: "instant" })
  })
  const remember = event => {
    const main = document.querySelector("[data-testid=stMain]")
    if (!main?.contains(event.target) || panel()?.contains(event.target)) return
    reflowed.observe(main) // a page may have brought another one
    beside = !!panel()
    const inner = event.composedPath()[0]
    const at = inner.closest("button, tr, li") ?? inner
    const name = (at.matches("[aria-label]") ? at : at.querySelector("[aria-label]"))?.getAttribute("aria-label")
    clicked = { at, root: at.getRootNode(), name, top: at.getBoundingClientRect().top }
  }
  const scrolled = () => {
    release()
    if (clicked && beside === !!panel()) clicked.top = where(clicked)
  }
  // A finger comes without a move: Plotly would select what was pointed at before it, or nothing.
  const touch = ({ target, touches: [{ clientX, clientY }, ...others] }) => {
    if (target.closest?.(".js-plotly-plot") && !others.length)
      target.dispatchEvent(new MouseEvent("mousemove", { bubbles: true, clientX, clientY }))
  }
  // On paper a figure is as wide as there is room (browser.css), whatever window it was drawn for.
  const printed = ({ type }) => {
    for (const svg of document.querySelectorAll(".js-plotly-plot .main-svg"))
      if (type === "beforeprint") svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`)
      else svg.removeAttribute("viewBox")
  }
  // A server that began anew knows no button of the page before it has drawn it: it would pass over the first click.
  const app = document.querySelector("[data-testid=stApp]")
  // What a button opens stands beside the app, which alone knows whether it is light or dark.
  document.documentElement.style.colorScheme = getComputedStyle(app).colorScheme
  let connected = true
  const connection = new MutationObserver(() => {
    const was = connected
    connected = app.dataset.testConnectionState === "CONNECTED"
    if (connected && !was) setTriggerValue("connected", true)
  })
  connection.observe(app, { attributeFilter: ["data-test-connection-state"] })
  const measure = () => NARROW.matches === data.narrow || setStateValue("narrow", NARROW.matches)
  measure()
  const ending = new AbortController()
  const { signal } = ending
  const on = (name, ...handlers) => {
    for (const handler of handlers) document.addEventListener(name, handler, { capture: true, passive: name === "touchstart", signal })
  }
  NARROW.addEventListener("change", measure, { signal })
  for (const name of ["beforeprint", "afterprint"]) addEventListener(name, printed, { signal })
  on("keydown", down, opening, opened)
  on("change", ({ target }) => target.type === "file" && watch(around(target))) // a file is looked for longer than an answer may take
  on("pointerdown", stop, opening) // a tab opens with this already
  on("click", opened, remember)
  on("scroll", scrolled)
  on("touchstart", touch)
  const end = () => {
    stop()
    reflowed.disconnect()
    connection.disconnect()
    ending.abort()
  }
  before = end
  return end
}
