"""What is shown to people: pictures of measurements."""
