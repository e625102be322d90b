"""What people see: Streamlit, DuckDB and Plotly over exported models. Imports engine.runtime and nothing else of the engine."""
