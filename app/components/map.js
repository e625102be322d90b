// What lies over a Plotly map: the names of regions, as many as there is room for, and a ring around the point that is pointed at on
// another map. Maps that are linked zoom to the same items. Tells Python which part of the map is on the screen, so that a map that
// has to be drawn anew can show it again, and how fine the screen is.
const QUIET = 350 // ms without a further move before Python hears of it
const APART = 10 // pixels between names
const MARK = 10 // pixels around the middle of what stands out
const CLOSE = 0.6 // of the whole map's width on the screen, from which the names of fine regions come as well
const OUTLIERS = 0.02 // of the items that another map shows, on each side: they need not come into view
const MARGIN = 0.06 // of what is zoomed to, on each side
const MANY = 20_000 // points, from which a turn of the wheel enlarges the picture of them, which is drawn anew once the wheel rests
const RESTS = 150 // ms without a further turn
const FURTHEST = 40 // times that a picture is enlarged or made smaller at most
const HOVERED = "seqscope-map-hovered"
const MOVED = "seqscope-map-moved"

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".root")
  root.stop?.() // Streamlit calls this again when the data change, and does not stop what ran before
  let plot = null
  let waiting = null
  let frame = 0
  let following = false // another map's zoom
  let enlarged = null // {scale, left, top, timer}: how the picture lies over the part of the screen that it is drawn for
  let ringed // the id that is pointed at on another map
  let places = null // id → [x, y] of the figure that is drawn

  const names = data.names.map(([x, y, level, text]) => {
    const name = document.createElement("span")
    name.textContent = text
    name.dir = "auto"
    return { x, y, level, name }
  })
  const ring = document.createElement("i")
  ring.hidden = true
  root.replaceChildren(...names.map(({ name }) => name), ring)
  const sizes = names.map(({ name }) => [name.offsetWidth + APART, name.offsetHeight + APART])
  for (const { name } of names) name.hidden = true // until what they are written on is drawn

  // Where points of the map are on the screen, while it is dragged as well; null where nothing is drawn yet.
  const screen = () => {
    const { xaxis, yaxis } = plot?._fullLayout ?? {}
    if (!xaxis?.range || !yaxis?.range) return null
    const [around, figure] = [root.getBoundingClientRect(), plot.getBoundingClientRect()]
    const [left, top] = [figure.x - around.x + xaxis._offset, figure.y - around.y + yaxis._offset]
    const [[west, east], [south, north]] = ranges(xaxis, yaxis)
    const [right, bottom] = [left + xaxis._length, top + yaxis._length]
    const at = (x, y) => [
      left + ((x - west) / (east - west)) * xaxis._length,
      top + ((north - y) / (north - south)) * yaxis._length,
    ]
    return { at, left, top, right, bottom, west, east, south, north }
  }
  // What is on the screen: Plotly's ranges, but for an enlarged picture.
  const ranges = (xaxis, yaxis) => {
    const { scale, left, top } = enlarged ?? { scale: 1, left: 0, top: 0 }
    const part = ({ range: [low, high], _length }, begins, ends) => [begins, ends].map(pixel => low + (pixel / _length) * (high - low))
    const across = part(xaxis, -left / scale, (xaxis._length - left) / scale)
    return [across, part(yaxis, yaxis._length + (top - yaxis._length) / scale, yaxis._length + top / scale)]
  }
  // Boxes of what Plotly says about the point that is pointed at: no name is written over it.
  const words = () => {
    const around = root.getBoundingClientRect()
    return [...plot.querySelectorAll(".hoverlayer .hovertext")]
      .map(word => word.getBoundingClientRect())
      .map(({ left, top, right, bottom }) => [left - around.x, top - around.y, right - around.x, bottom - around.y])
  }
  const draw = () => {
    frame = 0
    const view = screen()
    if (!view) return
    const place = ringed && points().get(ringed)
    ring.hidden = !place
    if (place) ring.style.translate = view.at(...place).map(value => `${value}px`).join(" ")
    const fine = view.east - view.west < CLOSE * data.width
    const boxes = plot._fullData
      .filter(trace => trace.meta === "mark")
      .flatMap(({ x, y }) => Array.from(x, (value, place) => view.at(value, y[place])))
      .map(([x, y]) => [x - MARK, y - MARK, x + MARK, y + MARK])
      .concat(words())
    names.forEach(({ x, y, level, name }, place) => {
      const [[width, height], [across, down]] = [sizes[place], view.at(x, y)]
      const box = [across - width / 2, down - height / 2, across + width / 2, down + height / 2]
      const free = !boxes.some(other => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])
      const wanted = free && (level === 0 || fine)
      if (wanted) boxes.push(box)
      name.hidden = !wanted || box[0] < view.left || box[2] > view.right || box[1] < view.top || box[3] > view.bottom
      name.style.translate = `${box[0] + APART / 2}px ${box[1] + APART / 2}px`
    })
  }
  const redraw = () => (frame ||= requestAnimationFrame(draw))

  // --- linked maps

  const points = () => {
    if (places) return places
    places = new Map()
    for (const { customdata, x, y } of plot?._fullData ?? [])
      for (let place = 0; place < (customdata?.length ?? 0); place++) places.set(customdata[place], [x[place], y[place]])
    return places
  }
  const tell = (event, detail) => data.linked && window.dispatchEvent(new CustomEvent(event, { detail: { from: root, ...detail } }))
  const hovered = event => {
    redraw()
    tell(HOVERED, { id: event.points?.[0]?.customdata })
  }
  const unhovered = () => {
    redraw()
    tell(HOVERED, {})
  }
  const circle = ({ detail }) => {
    ringed = detail.from === root ? undefined : detail.id
    redraw()
  }
  const follow = ({ detail: { from, ids } }) => {
    if (from === root || !plot || !window.Plotly) return
    const there = ids.map(id => points().get(id)).filter(Boolean)
    if (!there.length) return
    following = true
    window.Plotly.relayout(plot, ids.length === from.drawn ? { "xaxis.autorange": true, "yaxis.autorange": true } : around(there))
  }

  // --- what Plotly says

  const report = () => {
    const layout = plot?._fullLayout
    if (!layout?.xaxis?.range || !layout?.yaxis?.range) return
    setStateValue("view", [...layout.xaxis.range, ...layout.yaxis.range, layout.height].map(Number))
  }
  const moved = event => {
    redraw()
    if (!Object.keys(event ?? {}).some(name => /^[xy]axis\.(range|autorange)/.test(name))) return
    clearTimeout(waiting)
    waiting = setTimeout(report, QUIET)
    const view = screen()
    if (data.linked && !following && view) {
      const visible = ([, [x, y]]) => view.west <= x && x <= view.east && view.south <= y && y <= view.north
      const ids = [...points()].filter(visible).map(([id]) => id)
      root.drawn = points().size
      tell(MOVED, { ids })
    }
    following = false
  }
  const redrawn = () => {
    places = null
    redraw()
  }
  // --- the wheel; where points are many Plotly would draw all of them for each of its turns

  const lay = () => {
    const { xaxis, yaxis } = plot._fullLayout
    for (const { style } of plot.querySelectorAll(".gl-container canvas, .cartesianlayer, .selectionlayer")) {
      style.transformOrigin = `${xaxis._offset}px ${yaxis._offset}px`
      style.transform = enlarged ? `translate(${enlarged.left}px, ${enlarged.top}px) scale(${enlarged.scale})` : ""
    }
    plot.querySelector(".hoverlayer").style.visibility = enlarged ? "hidden" : "" // Plotly looks where points were before
  }
  const settle = () => {
    if (!enlarged) return
    clearTimeout(enlarged.timer)
    const { xaxis, yaxis } = plot._fullLayout
    const [across, up] = ranges(xaxis, yaxis)
    enlarged = null
    lay()
    window.Plotly.relayout(plot, { "xaxis.range": across, "yaxis.range": up })
  }
  const turned = event => {
    if (event.target.closest?.(".selectionlayer")) { // it lies over what listens to the wheel
      event.preventDefault()
      return plot.querySelector(".nsewdrag").dispatchEvent(new WheelEvent("wheel", event))
    }
    const { xaxis, yaxis } = plot._fullLayout
    if (!event.target.closest?.(".nsewdrag") || points().size < MANY) return
    event.preventDefault()
    event.stopImmediatePropagation()
    const figure = plot.getBoundingClientRect()
    const [x, y] = [event.clientX - figure.x - xaxis._offset, event.clientY - figure.y - yaxis._offset]
    const before = enlarged ?? { scale: 1, left: 0, top: 0 }
    clearTimeout(before.timer)
    const step = Math.exp(-Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 20) / 200) // as Plotly's
    const scale = Math.min(Math.max(before.scale * step, 1 / FURTHEST), FURTHEST)
    const more = scale / before.scale
    enlarged = { scale, left: x - more * (x - before.left), top: y - more * (y - before.top), timer: setTimeout(settle, RESTS) }
    lay()
    redraw()
  }

  const handlers = {
    plotly_relayout: moved,
    plotly_relayouting: redraw,
    plotly_afterplot: redrawn,
    plotly_hover: hovered,
    plotly_unhover: unhovered,
  }
  const detach = () => {
    for (const [event, handler] of Object.entries(handlers)) plot?.removeListener?.(event, handler)
    plot?.removeEventListener("wheel", turned, true)
    plot?.removeEventListener("pointerdown", settle, true)
  }
  const attach = () => {
    const chart = document.querySelector(`.st-key-${CSS.escape(data.chart)} .js-plotly-plot`)
    if (chart === plot || typeof chart?.on !== "function") return
    detach()
    plot = chart
    for (const [event, handler] of Object.entries(handlers)) plot.on(event, handler)
    plot.addEventListener("wheel", turned, { capture: true, passive: false })
    plot.addEventListener("pointerdown", settle, true)
    enlarged = null
    redrawn()
  }
  attach()
  const ratio = window.devicePixelRatio > 1 ? 2 : 1
  if (ratio !== data.ratio) setStateValue("ratio", ratio)
  window.seqscopeWebgl ??= !!document.createElement("canvas").getContext("webgl")
  if (window.seqscopeWebgl !== data.webgl) setStateValue("webgl", window.seqscopeWebgl)
  const watching = setInterval(attach, 400) // Streamlit replaces a figure whenever its data change
  window.addEventListener(HOVERED, circle)
  window.addEventListener(MOVED, follow)
  root.stop = () => {
    clearInterval(watching)
    clearTimeout(waiting)
    cancelAnimationFrame(frame)
    window.removeEventListener(HOVERED, circle)
    window.removeEventListener(MOVED, follow)
    detach()
  }
  return root.stop
}

// The ranges of both axes that show these points but for a few far out.
function around(points) {
  return Object.fromEntries(
    ["xaxis.range", "yaxis.range"].map((name, axis) => {
      const values = points.map(point => point[axis]).sort((a, b) => a - b)
      const few = Math.floor(OUTLIERS * values.length)
      const [low, high] = [values[few], values[values.length - 1 - few]]
      const more = MARGIN * (high - low) || 0.5
      return [name, [low - more, high + more]]
    }),
  )
}
