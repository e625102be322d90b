"""The one reader of tables: what a file is, how it holds rows, which column holds what, and what is wrong with it.

Uploads (app/uploads) and imports (engine/data) read with it; batches of histories (app/reports) have its names of columns and its
settings of the database. It imports neither torch nor Streamlit.
"""
