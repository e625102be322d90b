"""What the app looks things up in (catalogue, attributes), and what it keeps for its visitors (database and the rest).

Streamlit is never imported here.
"""
