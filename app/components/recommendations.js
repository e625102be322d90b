// Ranked lists of several models side by side. Python holds them; this draws them and reports clicks.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.report = setTriggerValue
  const draw = ({ models }) => drawLists(models, root, parentElement)
  if (data?.early) {
    early.address = data.early
    drawsEarly("lists", root, draw)
  }
  drawChanged(root, { models: data?.models ?? [] }, draw)
}

function drawLists(models, root, parentElement) {
  const report = act => (act.do === "add" ? edit(act, () => root.report("act", act)) : root.report("act", act))
  const grid = element("div", "models")
  grid.tabIndex = -1
  const many = models.length
  const sides = models.some(model => model.before)
  const even = most => Math.ceil(many / Math.ceil(many / most)) || 1 // cards in a row, so that rows are about equally long
  grid.style.setProperty("--wide", even(sides ? 3 : 6))
  grid.style.setProperty("--narrow", even(3))
  for (const model of models) {
    const card = element("section", "model")
    const heading = element("h2")
    heading.append(sign(model), element("span", "", model.title))
    const head = element("div", "head")
    head.append(heading, element("p", "note", model.note))
    card.append(skip("Skip this list", `Skip the list of ${model.title}`), head)
    card.setAttribute("aria-label", model.title)
    if (model.can) card.append(...abilities(model, grid))
    if (model.cannot) card.append(element("p", "cannot", model.cannot))
    else if (model.before) {
      const both = element("div", "both")
      both.style.setProperty("--rows", 1 + Math.max(model.before.length, model.rows.length))
      both.append(listOfA(model.before), listOfB(ranked(model, report)))
      card.append(both)
    } else card.append(ranked(model, report))
    grid.append(card)
  }
  grid.append(end("End of the lists"))
  const firsts = models.filter(model => !model.cannot && model.rows.length).map(model => `${model.title}: ${called(model.rows[0])}`)
  const status = parentElement.querySelector("[role=status]")
  const words = firsts.length ? `First in each list. ${firsts.join("; ")}` : "No model gives a list."
  if (status.textContent !== words) status.textContent = words
  const scrolled = root.querySelector(".models")?.scrollLeft ?? 0
  redraw(root, grid)
  grid.scrollLeft = scrolled

  // The same item in all lists, while the pointer or the focus is on one of them.
  const mark = (event) => {
    const id = event.target.closest?.("li")?.dataset.id
    for (const row of grid.querySelectorAll("li")) row.classList.toggle("same", id !== undefined && row.dataset.id === id)
  }
  grid.onpointerover = mark
  grid.onpointerleave = mark
  grid.onfocusin = mark
}

// The list of A, to be read beside that of B.
function listOfA(rows) {
  const side = element("div", "pinned")
  const list = element("ol")
  for (const item of rows) {
    const row = element("li")
    row.dataset.id = item.id
    const words = element("div", "words")
    words.append(titled(element("span"), item))
    if (item.dropped) {
      row.classList.add("dropped")
      words.append(" ", tag("down", "dropped", "Not in the list of B"))
    }
    row.append(element("span", "rank", item.rank), words)
    list.append(row)
  }
  side.append(element("h3", "", "A · original"), list)
  return side
}

function listOfB(list) {
  const side = element("div")
  side.append(element("h3", "", "B · edited"), list)
  return side
}

function ranked(model, report) {
  const list = element("ol")
  for (const item of model.rows) {
    const row = element("li")
    row.dataset.id = item.id
    for (const [name, on] of [
      ["truth", item.truth],
      ["chosen", item.chosen],
      ["beyond", item.beyond],
    ])
      if (on) row.classList.add(name)

    const words = element("div", "words")
    const title = titled(action("title", "", `Why this item? ${called(item)} (${model.title})`), item, "Why this item?")
    title.onclick = () => report({ do: "explain", id: item.id, model: model.name })
    words.append(title)
    if (item.tie) words.append(" ", tag("tie", item.tie, item.tie_help))
    if (item.known) words.append(" ", tag("", "in the history", "The history has this item already"))
    const line = element("div", "line")
    if (item.share) line.append(element("span", "share", item.share))
    if (item.truth) line.append(tag("truth", "came next", "The held-out item: what this user chose next"))
    if (item.badge) line.append(tag("badge", item.badge, item.badge_help))
    if (!item.known || model.repeats) {
      const add = action("add", "+", `Add to the history: ${called(item)} (${model.title})`)
      add.title = "Add to the history"
      add.onclick = once(() => report({ do: "add", id: item.id, model: model.name, known: item.known }))
      line.append(add)
    }
    words.append(line)

    const rank = element("span", "rank", item.rank)
    if (item.moved) rank.append(tag(`moved ${item.change}`, item.moved, "Compared with the pinned history"))
    row.append(rank, words)
    if (item.share) {
      const bar = element("span", "bar")
      const length = element("span")
      length.style.width = `${100 * item.bar}%`
      length.style.background = model.colour
      bar.append(length)
      row.append(bar)
    }
    list.append(row)
  }
  return list
}

// What a model can and cannot do: a button in the corner of its card, and what opens over the page, so that no card grows.
function abilities(model, grid) {
  const name = `What ${model.title} can and cannot do`
  const button = action("about", "?", name)
  button.title = "What it can and cannot do"
  const box = element("div", "abilities")
  box.popover = "auto"
  box.setAttribute("role", "dialog")
  box.setAttribute("aria-label", name)
  const list = element("dl")
  for (const [term, words] of Object.entries(model.can)) list.append(element("dt", "", term), element("dd", "", words))
  box.append(element("h3", "", name), list)
  button.popoverTargetElement = box
  const close = () => box.matches(":popover-open") && box.hidePopover()
  box.ontoggle = ({ newState }) => {
    const scrolled = [[window, { capture: true }], [grid, {}]] // it would stay behind while its card moves away
    if (newState !== "open") return scrolled.forEach(([where, how]) => where.removeEventListener("scroll", close, how))
    const corner = button.getBoundingClientRect() // which may be out of view: the box is not
    const [top, bottom] = [Math.min(corner.top, window.innerHeight), Math.max(corner.bottom, 0)]
    const left = Math.min(button.parentElement.getBoundingClientRect().left, window.innerWidth - box.offsetWidth - 12)
    const below = window.innerHeight - bottom - 18
    const high = Math.min(box.scrollHeight + 2, Math.max(below, top - 18))
    box.style.left = `${Math.max(12, left)}px`
    box.style.maxHeight = `${high}px`
    box.style.top = `${high <= below ? bottom + 6 : top - high - 6}px`
    scrolled.forEach(([where, how]) => where.addEventListener("scroll", close, how))
  }
  return [button, box]
}

function tag(name, text, help) {
  const made = element("span", `tag ${name ?? ""}`, text)
  if (help) made.title = help
  return made
}
