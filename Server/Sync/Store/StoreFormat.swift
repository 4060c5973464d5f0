/// The format of a store's data, the same in PostgreSQL and in SQLite.
enum StoreFormat {
  /// The version read and written by this ferryd.
  static let version = 8

  /// Throws if another version wrote the data.
  static func check(_ found: Int) throws(StoreError) {
    if found == version { return }
    throw .failed(
      "another version of ferryd wrote the data: its format is \(found), and this version needs "
        + "format \(version); use that version of ferryd, or a new store")
  }
}
