"""The one reader of tables: what a file is, how it holds rows, which column holds what, and what is wrong with it.

Uploads (app/uploads), imports (engine/data) and batches of histories (app/reports) read with it. It imports neither torch nor
Streamlit.
"""
