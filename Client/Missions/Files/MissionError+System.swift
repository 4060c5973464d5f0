extension MissionError {
  /// Creates an error from the operating system's error number.
  init(errno code: Int32, _ what: String) {
    self.init(converting: FileStoreError(errno: code, what))
  }
}
