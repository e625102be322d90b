"""Reports: what was seen, as one document that is built, shown, exported and verified. Nothing here needs Streamlit.

    asked = Asked(history=["alien-1979", "aliens-1986"])
    report = build(Zoo.open("exports/sample"), asked)
    Path("report.html").write_bytes(html.render(report))
    for line in verify(report, zoo):
        print(line)

document.py says what a report holds, and is report.json; everything else reads it or makes it.
"""
