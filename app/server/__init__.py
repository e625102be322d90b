"""What the server does around Streamlit: what comes in and what goes out, whose it is, and in which order pages are run.

door.py       what is refused before Streamlit sees it, and what every answer carries
keys.py       the key of a browser, in its cookie
owner.py      who is looking: an account, or a browser with its key
received.py   files that visitors have sent and that no page has taken yet
links.py      addresses that their visitor alone can follow
downloads.py  links to files that are taken away
early.py      what an edit of the history brings, before the page is run
frontend.py   Streamlit's own page and scripts
run_queue.py  runs of pages, one after the other
"""
