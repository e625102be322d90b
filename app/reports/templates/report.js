"use strict"
// Draws the figures of a report with Plotly in the page's colours, light or dark; the SVG figures stay for paper.
const shapes = document.getElementById("shapes").textContent
const swaps = [["#0f181a", "--ink"], ["#fcfcfb", "--paper"]]
const config = { displaylogo: false, showSendToCloud: false, typesetMath: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] }

function draw() {
  const css = getComputedStyle(document.documentElement)
  const own = (name) => css.getPropertyValue(name).trim()
  const text = swaps.reduce((so, [light, name]) => so.replaceAll(light, own(name)), shapes)
  const axis = { gridcolor: own("--rule"), zerolinecolor: own("--rule"), linecolor: own("--rule"), automargin: true }
  const layout = {
    font: { color: own("--ink"), family: getComputedStyle(document.body).fontFamily, size: 13 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    xaxis: axis, yaxis: axis,
    hoverlabel: { bgcolor: own("--raised"), bordercolor: own("--rule"), font: { color: own("--ink") } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: own("--quiet"), activecolor: own("--ink") },
  }
  const figures = JSON.parse(text)
  for (const place of document.querySelectorAll("[data-figure]")) {
    const figure = figures[place.dataset.figure]
    figure.layout.template = { layout }
    Plotly.react(place, figure.data, figure.layout, config)
  }
}

document.documentElement.classList.add("live")
draw()
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw)
