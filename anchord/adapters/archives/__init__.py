"""The Internet Archive: captures of the Wayback Machine, and items with the files in them."""
