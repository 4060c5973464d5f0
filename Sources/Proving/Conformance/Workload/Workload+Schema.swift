import FerryProtocol

extension Workload {
  /// The tables of the application's first version. None declares a default: an unwritten column is
  /// NULL everywhere.
  package static let schema =
    [
      "CREATE TABLE notes(id TEXT PRIMARY KEY NOT NULL, title TEXT, body, stars INTEGER)",
      "CREATE TABLE lists(id TEXT PRIMARY KEY NOT NULL, name TEXT)",
      """
      CREATE TABLE items(id TEXT PRIMARY KEY NOT NULL,
        list TEXT REFERENCES lists(id) ON DELETE CASCADE, label TEXT, done INTEGER)
      """,
      "CREATE TABLE ledger(id TEXT PRIMARY KEY NOT NULL, txn TEXT, size INTEGER, place INTEGER)",
      "CREATE TABLE beats(id TEXT PRIMARY KEY NOT NULL, n INTEGER)",
      "CREATE TABLE places(id TEXT PRIMARY KEY NOT NULL, name TEXT, seats)",
      "CREATE TABLE tallies(id TEXT PRIMARY KEY NOT NULL, votes INTEGER)",
      "CREATE TABLE drafts(id TEXT PRIMARY KEY NOT NULL, body TEXT, pages INTEGER)",
      "CREATE TABLE vows(id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL, pages INTEGER NOT NULL)",
      """
      CREATE TABLE pledges(id TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL, pages INTEGER NOT NULL)
      """,
      """
      CREATE TABLE slots(id TEXT PRIMARY KEY NOT NULL, shelf TEXT NOT NULL,
        place INTEGER NOT NULL CHECK (place BETWEEN 0 AND 1999), UNIQUE(shelf, place))
      """,
      """
      CREATE TABLE essays(id TEXT PRIMARY KEY NOT NULL,
        list TEXT REFERENCES lists(id) ON DELETE CASCADE,
        a TEXT, b TEXT, c TEXT, d TEXT, e TEXT, f TEXT)
      """,
      """
      CREATE TABLE sheets(id TEXT PRIMARY KEY NOT NULL, kept TEXT, sent TEXT, high INTEGER,
        low INTEGER, tags TEXT, body TEXT)
      """,
      "CREATE TABLE paints(id TEXT PRIMARY KEY NOT NULL, shade TEXT)",
      "CREATE TABLE labels(id TEXT PRIMARY KEY NOT NULL, code TEXT UNIQUE)",
      """
      CREATE TABLE tags(id TEXT PRIMARY KEY NOT NULL,
        code TEXT REFERENCES labels(code) ON UPDATE CASCADE, note TEXT)
      """,
    ] + clubs + shelves

  /// Those of them to track.
  package static let tables: [Name] = [
    "notes", "lists", "items", "ledger", "beats", "places", "tallies", "drafts", "slots",
    "vows", "pledges", "essays", "sheets", "labels", "tags", "paints", "clubs", "members",
    "roles", "badges", "shelves", "books", "loans",
  ]

  /// Steps by which the application's schema grows, one statement each. Devices take them at
  /// different times, always in this order.
  package static let upgrades = [
    "ALTER TABLE notes ADD COLUMN tag TEXT",
    "ALTER TABLE items ADD COLUMN weight REAL",
    "ALTER TABLE notes ADD COLUMN extra",
    "ALTER TABLE paints RENAME COLUMN shade TO color",
  ]

  /// Returns the table and column of beats, in a schema with so many steps.
  static func beats(level: Int) -> (table: String, column: String) {
    level >= 5 ? ("pulses", "strokes") : ("beats", "n")
  }

  /// A column with another name since an upgrade. The space keeps its values, which wait on
  /// devices.
  static let renamed: (table: Name, column: Name) = ("paints", "shade")

  /// Returns the column of `paints`, in a schema with so many upgrades.
  static func paintColumn(level: Int) -> String { level >= 4 ? "color" : "shade" }

  /// A table whose rows are deleted with their parents' (ON DELETE CASCADE).
  package struct Cascade: Sendable {
    /// The column with the parent; `nil`: the first part of the key has it.
    let column: Name?
    let parent: Name

    /// Returns the parent of a record, given the value of a column.
    package func parent(of record: Name, _ value: (Name) -> Value?) -> RecordKey? {
      guard let column else {
        // The key is a list: ["PARENT",…].
        let parts = record.text.split(separator: "\"", maxSplits: 2)
        return parts.count < 2 ? nil : RecordKey(table: parent, record: Name(String(parts[1])))
      }
      guard case .text(let found)? = value(column) else { return nil }
      return RecordKey(table: parent, record: Name(found))
    }
  }

  /// These tables.
  ///
  /// A badge keeps its member instead, and a nest its vine. They wait while no device that still
  /// has the parent has synced.
  package static let cascades: [Name: Cascade] = [
    "items": Cascade(column: "list", parent: "lists"),
    "essays": Cascade(column: "list", parent: "lists"),
    "members": Cascade(column: "club", parent: "clubs"),
    "badges": Cascade(column: "member", parent: "members"),
    "roles": Cascade(column: nil, parent: "clubs"),
    "books": Cascade(column: "shelf", parent: "shelves"),
    "loans": Cascade(column: "book", parent: "books"),
    "boughs": Cascade(column: "trunk", parent: "trunks"),
    "twigs": Cascade(column: "bough", parent: "boughs"),
    "vines": Cascade(column: "up", parent: "vines"),
    "nests": Cascade(column: "vine", parent: "vines"),
    "chips": Cascade(column: "box", parent: "boxes"),
    "order_lines": Cascade(column: "order_id", parent: "orders"),
  ]

  /// The table whose rows follow a value of their parents (ON UPDATE CASCADE), and the column of
  /// both tables.
  package static let follower: (table: Name, column: Name, parent: Name) = (
    "tags", "code", "labels"
  )

  /// Returns the editable columns of `notes`, in a schema with so many upgrades.
  static func editableColumns(level: Int) -> [String] {
    ["title", "body", "stars"] + (level >= 1 ? ["tag"] : []) + (level >= 3 ? ["extra"] : [])
  }

  /// Notes that any device may insert; all others are made by one device alone.
  static let sharedNotes = (0..<8).map { "n\($0)" }
}
