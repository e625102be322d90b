"""The app with tokenizers that learn next to nothing. What they learn is tested where they are; here somebody waits for them."""

from pathlib import Path

from streamlit.starlette import App

from app import serve
from app.jobs import kinds

kinds.STEPS = 100
app = App(Path(serve.__file__))  # `streamlit run` reads the file for a line like this one before it imports it
app = serve.app
