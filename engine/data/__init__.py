"""Raw files to datasets, and datasets to arrays. Reading a prepared dataset needs numpy and pyarrow alone."""
