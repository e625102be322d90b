import streamlit as st
st.title("Map")
