"""What several pages share: drawn with Streamlit, where it is called."""
