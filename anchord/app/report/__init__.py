"""What an audit says, written down: for people, scripts, spreadsheets, wikis and browsers."""
