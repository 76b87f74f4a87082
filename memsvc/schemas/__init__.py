"""What clients may ask and write: parameters, records, results."""
