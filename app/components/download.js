// A link that downloads. The browser follows it by itself, so it can be saved, copied and resumed; a question for the file's first
// byte goes along, because a browser says neither that a file is still being made nor why it could not be had.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".download")
  const [link, note] = ["a", "p"].map(tag => root.querySelector(tag))
  root.className = `download ${data.type}`
  link.href = data.address
  link.title = data.help ?? ""
  link.querySelector(".label").textContent = data.label
  link.querySelector(".unseen").hidden = /^download\b/i.test(data.label)
  link.onclick = () => follow(link, note)
}

async function follow(link, note) {
  note.textContent = ""
  link.setAttribute("aria-busy", "true")
  const patience = setTimeout(() => {
    link.classList.add("making")
    note.className = "unseen" // for those who do not see the icon
    note.textContent = "The file is being made."
  }, 500)
  const words = await refused(link.href)
  clearTimeout(patience)
  link.classList.remove("making")
  link.removeAttribute("aria-busy")
  note.className = ""
  note.textContent = words
}

async function refused(address) {
  try {
    const answer = await fetch(address, { headers: { range: "bytes=0-0" }, cache: "no-store" })
    return answer.ok ? "" : await answer.text()
  } catch {
    return "The server did not answer. Try again in a moment."
  }
}
