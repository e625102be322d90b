// Gives the focus back that a step of the keyboard lost, lets Enter take the first result of a search and arrows reach the others, shows a section that is
// opened from its beginning, and keeps what was clicked in its place when the details of an item open beside the page or close.
const STEP = 100 // ms between two looks
const LOOKED = 15_000 // ms that the answer to a step may take
const QUIET = 400 // ms after the last letter until the results are those of the whole text
const IDLE = '[data-testid="stApp"][data-test-script-state="notRunning"]'
const ABLE = "button:not(:disabled), input:not(:disabled), [role=combobox], [tabindex='0']"

export default function () {
  let watching = null
  let typed = 0

  // The keys of the containers around an element, the nearest first.
  const around = element => {
    const keys = []
    for (let at = element; at; at = at.parentElement)
      for (const name of at.classList ?? []) if (name.startsWith("st-key-")) keys.push(name)
    return keys
  }
  const refocus = keys => {
    for (const key of keys) {
      const near = key.endsWith("_hits") ? [key.replace(/_hits$/, "_search"), key] : [key]
      for (const name of near) {
        const found = document.querySelector(`.${CSS.escape(name)}`)
        const able = found?.matches(ABLE) ? found : found?.querySelector(ABLE)
        if (able) return able.focus({ preventScroll: true })
      }
    }
  }
  const stop = () => clearInterval(watching)
  const watch = keys => {
    stop()
    const until = performance.now() + LOOKED
    watching = setInterval(() => {
      if (performance.now() > until) return stop()
      const now = document.activeElement
      if (now && now !== document.body) return
      if (document.querySelector(IDLE)) refocus(keys)
    }, STEP)
  }
  const take = (name, keys) => {
    stop()
    const until = performance.now() + LOOKED
    watching = setInterval(() => {
      if (performance.now() > until) return stop()
      if (performance.now() - typed < QUIET || !document.querySelector(IDLE)) return
      stop()
      const first = document.querySelector(`.${CSS.escape(`${name}_hits`)} button`)
      if (!first) return
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

  const down = event => {
    stop()
    if (event.key === "ArrowDown" || event.key === "ArrowUp") return step(event)
    if (event.key !== "Enter" && event.key !== " ") return
    const at = event.target
    const keys = around(at)
    const search = keys[0]?.match(/^(st-key-.+)_search$/)
    if (at.matches?.("input") && search && event.key === "Enter" && at.value.trim()) take(search[1], keys)
    else if (keys.length && !at.matches?.("input[type=text], input[type=search], textarea")) watch(keys)
  }
  // A section that is opened from far down in another one begins at its beginning.
  const opened = event => {
    const row = event.target.closest?.("[role=tablist]")
    const section = row?.closest('[class*="st-key-sections_"]')
    if (!section || (event.type === "keydown" && !/^(Arrow|Home|End)/.test(event.key))) return
    if (section.getBoundingClientRect().top < row.getBoundingClientRect().top) section.scrollIntoView({ block: "start" })
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
    if (clicked && beside === !!panel()) clicked.top = where(clicked)
  }
  const input = () => (typed = performance.now())
  document.addEventListener("keydown", down, true)
  document.addEventListener("input", input, true)
  document.addEventListener("pointerdown", stop, true)
  document.addEventListener("click", opened, true)
  document.addEventListener("keydown", opened, true)
  document.addEventListener("click", remember, true)
  document.addEventListener("scroll", scrolled, true)
  return () => {
    stop()
    reflowed.disconnect()
    document.removeEventListener("keydown", down, true)
    document.removeEventListener("input", input, true)
    document.removeEventListener("pointerdown", stop, true)
    document.removeEventListener("click", opened, true)
    document.removeEventListener("keydown", opened, true)
    document.removeEventListener("click", remember, true)
    document.removeEventListener("scroll", scrolled, true)
  }
}
