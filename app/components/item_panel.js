// The details of one item: its card, who recommends it and why, its semantic IDs, its nearest items. Python holds them; this draws
// them and reports clicks. Escape closes. In a narrow window they are a sheet, which folds to its head.
const STATES = new WeakMap() // element → {id, stop} of what it shows
let opener = null // {button, root} of what had the focus when the panel opened, and gets it back

const SHEET = matchMedia("(max-width: 1099px)") // item_panel.css and browser.css
const SWIPE = 24 // px that a finger goes on the head of a sheet
let latest = null // {id, page} of what was drawn last
let folded = false

const LONG_DESCRIPTION = 260 // characters of a description that are shown at once

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const frame = root.getRootNode().host?.closest(".st-key-item_panel")
  const before = STATES.get(parentElement)
  before?.stop()
  const report = (doing, more) => {
    if (doing === "close") {
      latest = null
      giveBack()
    }
    setTriggerValue("act", { do: doing, id: data.id, ...more })
  }
  const stop = listen(frame, report)
  STATES.set(parentElement, { id: data.id, stop })

  const focused = root.getRootNode().activeElement?.dataset?.focus
  const panel = element("aside", "panel")
  panel.setAttribute("aria-label", `Details: ${called(data)}`)
  panel.append(head(data, report, headAlone => fold(root, headAlone)), ...about(data, report))
  for (const [name, section] of Object.entries(data.sections)) panel.append(sectioned(name, section, report))
  root.replaceChildren(panel)
  if (focused) root.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true })
  // who takes an item along to another page wants to see that page
  if (latest?.id !== data.id) fold(root, false)
  else fold(root, folded || latest.page !== data.page)
  latest = { id: data.id, page: data.page }
  if (before?.id !== data.id && frame) {
    frame.scrollTo({ top: 0 })
    const clicked = focusedOutside(frame)
    if (clicked) uncover(frame, clicked)
    if (!before) opener = clicked && { button: clicked, root: clicked.getRootNode() }
    const status = parentElement.querySelector("[role=status]") // stays, so that a change of it is read out
    setTimeout(() => (status.textContent = `Details: ${called(data)}`), 100)
  }
  return stop
}

// --- the frame

// Escape closes, unless it is meant for something else; a sheet keeps off the sidebar.
function listen(frame, report) {
  const key = event => {
    if (event.key !== "Escape" || event.defaultPrevented) return
    const at = event.composedPath()[0]
    if (at.closest?.("input, textarea, [role=combobox], [role=dialog], [role=listbox], :popover-open")) return
    if (document.querySelector("[data-testid=stPopoverBody], [data-testid=stDialog], [role=listbox]")) return
    report("close")
  }
  const main = frame?.closest("[data-testid=stMain]")
  const place = () => {
    frame.style.setProperty("--main-left", `${main.getBoundingClientRect().left}px`)
    main.style.setProperty("--sheet", `${frame.offsetHeight}px`)
  }
  const watching = main && new ResizeObserver(place)
  watching?.observe(main)
  watching?.observe(frame)
  document.addEventListener("keydown", key)
  return () => {
    document.removeEventListener("keydown", key)
    watching?.disconnect()
  }
}

// To what was drawn anew since: the same button of its list, or the list, where the item may have gone from it.
function giveBack() {
  const { button, root } = opener ?? {}
  if (button?.isConnected || !root?.host) return button?.focus({ preventScroll: true })
  const same = root.querySelector(`[aria-label="${CSS.escape(button.getAttribute("aria-label"))}"]`)
  ;(same ?? root.querySelector("[tabindex]"))?.focus({ preventScroll: true })
}

// A sheet shows its head alone where `headAlone`, else all.
function fold(root, headAlone) {
  folded = headAlone
  root.classList.toggle("folded", folded)
  root.querySelector(".fold").setAttribute("aria-expanded", String(!folded))
}

// A finger on the head of a sheet: down folds it, then closes it; up, or a tap on what is folded, opens it.
function swiped(box, foldTo, report) {
  let [from, moved] = [0, 0]
  box.onpointerdown = event => (from = event.clientY)
  box.onpointerup = event => {
    moved = event.clientY - from
    if (!SHEET.matches) return
    if (moved > SWIPE) folded ? report("close") : foldTo(true)
    else if (moved < -SWIPE) foldTo(false)
  }
  box.onclick = event => {
    if (folded && SHEET.matches && Math.abs(moved) <= SWIPE && !event.target.closest("button")) foldTo(false)
  }
}

function focusedOutside(frame) {
  let active = document.activeElement
  if (!active || active === document.body || frame.contains(active)) return null
  while (active.shadowRoot?.activeElement) active = active.shadowRoot.activeElement
  return active
}

// What was clicked stays in view above a sheet.
function uncover(frame, clicked) {
  const [sheet, at] = [frame.getBoundingClientRect(), clicked.getBoundingClientRect()]
  if (sheet.top > 0 && at.bottom > sheet.top - 16)
    frame.closest("[data-testid=stMain]")?.scrollBy({ top: at.bottom - sheet.top + 48 })
}

// --- the card

function head(data, report, foldTo) {
  const box = element("header")
  const words = element("div", "words")
  const title = element("p", "item", data.title) // no heading: it stands before the page's own, and names the whole panel
  title.dir = "auto"
  if (data.detail) title.append(" ", element("span", "detail", data.detail))
  words.append(title)
  if (data.standing) words.append(element("p", "quiet", data.standing))
  const close = action("close", "×", "Close the details", "close")
  close.title = "Close (Escape)"
  close.onclick = () => report("close")
  const more = action("fold", null, "Details", "fold")
  more.onclick = () => foldTo(!folded)
  swiped(box, foldTo, report)
  box.append(words, more, close)
  return box
}

function about(data, report) {
  const bar = element("div", "actions")
  const add = action("strong", data.added ? "Add once more" : "Add to history", null, "add")
  add.onclick = once(() => edit({ do: "add", id: data.id, known: data.added }, () => report("add", { added: data.added })))
  bar.append(add)
  if (data.added) {
    const remove = action("", "Remove from history", null, "remove")
    remove.onclick = () => report("remove")
    bar.append(remove)
  }
  for (const link of data.links) bar.append(anchor(link.title, link.href, () => report("page", { to: link.page })))
  const parts = [bar]
  if (data.description) {
    const text = element("p", "description", data.description)
    parts.push(text)
    if (data.description.length > LONG_DESCRIPTION) {
      text.classList.add("cut")
      const more = action("title quiet", "Read on", null, "description")
      more.onclick = () => {
        more.remove()
        text.classList.remove("cut")
      }
      parts.push(more)
    }
  }
  if (data.attributes.length) {
    const list = element("dl")
    for (const { name, title, values, filters } of data.attributes) {
      const cell = element("dd")
      values.forEach(({ text, value }, place) => {
        if (place) cell.append(", ")
        if (!filters) return cell.append(text)
        const link = action("title", text, null, `value ${name} ${value}`)
        link.title = `All items with ${title}: ${text}`
        link.onclick = () => report("value", { to: name, value })
        cell.append(link)
      })
      list.append(element("dt", "", title), cell)
    }
    parts.push(list)
  }
  if (data.series) parts.push(series(data, report))
  return parts
}

function series(data, report) {
  const box = element("div", "series")
  box.append(element("p", "quiet", data.series.title))
  const list = element("ol")
  for (const item of data.series.items) {
    const row = element("li")
    row.append(element("span", "place", item.place), item.id === data.id ? element("b", "", item.title) : chosen(item, report))
    list.append(row)
  }
  box.append(list)
  return box
}

// --- the sections

function sectioned(name, section, report) {
  const box = element("details")
  box.open = section.open
  const summary = element("summary", "", section.title)
  summary.title = section.help
  summary.dataset.focus = name
  summary.onclick = event => {
    event.preventDefault()
    box.open = !box.open
    report("toggle", { to: name })
  }
  box.append(summary)
  if (!section.open) box.append(element("p", "quiet", "…"))
  else if (section.failed) box.append(element("p", "quiet", section.failed))
  else if (section.content.empty && !section.content.spaces) box.append(element("p", "quiet", section.content.empty))
  else box.append(...{ ranks, why, codes, near }[name](section.content, report))
  return box
}

function ranks({ rows, note }) {
  const table = element("table", "ranks")
  table.append(header(["Model", "Rank", "Probability"]))
  for (const model of rows) {
    const row = element("tr")
    row.append(named(model))
    if (model.cannot) {
      const cell = element("td", "quiet", model.cannot)
      cell.colSpan = 2
      row.append(cell)
    } else {
      const rank = element("td", "number shaded", model.rank)
      rank.style.setProperty("--shade", `${Math.round(40 * model.shade)}%`)
      rank.title = model.help
      row.append(rank, element("td", "number", model.share || "–"))
    }
    table.append(row)
  }
  return note ? [element("p", "quiet", note), table] : [table]
}

function why({ models, events, note, sums, cannot, waiting }, report) {
  const parts = [element("p", "quiet", "Rank with one event removed. Purple: the rank gets worse, so the event raises the item; orange: it improves.")]
  if (models.length) {
    const table = element("table", "why")
    const top = element("tr")
    top.append(element("th", "", "Rank now"))
    for (const model of models) {
      const cell = element("th", "number")
      const mark = sign(model, false)
      mark.setAttribute("aria-label", model.title)
      cell.append(mark, element("span", "", model.rank))
      cell.title = model.title
      top.append(cell)
    }
    table.append(top)
    for (const event of events) {
      const row = element("tr")
      const name = element("th")
      name.scope = "row"
      const words = element("div", "event")
      words.append(element("span", "place", event.place), chosen(event, report))
      name.append(words)
      row.append(name)
      for (const { text, move, help } of event.cells) {
        const cell = element("td", `number ${move > 0 ? "for" : move < 0 ? "against" : ""}`, text)
        cell.style.setProperty("--shade", `${Math.round(15 * Math.sign(Math.abs(move)) + 50 * Math.abs(move))}%`)
        cell.title = help
        row.append(cell)
      }
      table.append(row)
    }
    parts.push(table)
  }
  for (const text of [note, ...sums, ...cannot]) if (text) parts.push(element("p", "quiet", text))
  if (waiting) {
    const ask = action("", `Also compute for ${waiting} (slower)`, null, "slow")
    ask.onclick = () => {
      ask.disabled = true
      report("slow")
    }
    parts.push(ask)
  }
  return parts
}

function codes({ rows }, report) {
  const list = element("ul", "codes")
  for (const tokenizer of rows) {
    const row = element("li")
    const name = element("span", "name")
    name.append(sign(tokenizer, false), tokenizer.title)
    const path = element("span", "path")
    for (const code of tokenizer.codes) {
      const chip = action("chip", code.text, `${code.help} (${tokenizer.title})`, `${tokenizer.name} ${code.prefix}`)
      chip.title = code.help
      chip.onclick = () => report("prefix", { to: tokenizer.name, prefix: code.prefix })
      path.append(chip)
    }
    if (tokenizer.rest) {
      const rest = element("span", "rest", tokenizer.rest)
      rest.title = "Only disambiguates items with the same codes"
      path.append(rest)
    }
    row.append(name, path)
    list.append(row)
  }
  return [list]
}

function near({ spaces, space, rows, empty }, report) {
  const choice = element("select")
  choice.setAttribute("aria-label", "Space")
  choice.dataset.focus = "space"
  for (const { key, title } of spaces) choice.append(new Option(title, key, key === space, key === space))
  choice.onchange = () => report("space", { to: choice.value })
  if (empty) return [choice, element("p", "quiet", empty)]
  const list = element("ol", "near")
  rows.forEach((item, place) => {
    const row = element("li")
    row.append(element("span", "place", String(place + 1)), chosen(item, report), element("span", "quiet", item.similarity))
    list.append(row)
  })
  return [choice, list]
}

// --- pieces

// A click selects this item in place of the one that is shown.
function chosen(item, report) {
  const title = titled(action("title", "", null, `item ${item.id}`), item)
  title.onclick = () => report("select", { to: item.id })
  return title
}

function named(model) {
  const cell = element("th")
  cell.scope = "row"
  cell.append(sign(model), model.title)
  return cell
}

function header(titles) {
  const row = element("tr")
  titles.forEach((title, place) => row.append(element("th", place ? "number" : "", title)))
  return row
}

function anchor(text, href, follow) {
  const link = element("a", "", text)
  link.href = href
  link.onclick = event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return // another tab
    event.preventDefault()
    follow()
  }
  return link
}
