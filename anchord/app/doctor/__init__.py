"""Looking at everything a working anchord needs; see `anchord.app.doctor.examination`."""
