pub fn disk_changed() {}
