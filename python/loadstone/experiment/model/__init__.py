"""What an experiment file may hold: keys, values, properties, templates, points; and what is generated of them."""
