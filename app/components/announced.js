// Words for those who do not see what changed on the page.
export default function ({ data, parentElement }) {
  const status = parentElement.querySelector("[role=status]")
  if (status.textContent !== data.words) status.textContent = data.words
}
