import FerryProtocol

// Tables with changing parents: rows get other parents while their parents are deleted or get other
// keys. Only the device that made a shelf moves and deletes its books and loans, and no loan is
// ever deleted.
extension Workload {
  /// The table of never deleted rows.
  package static let loans: Name = "loans"

  static let shelves = [
    "CREATE TABLE shelves(id TEXT PRIMARY KEY NOT NULL, name TEXT, maker TEXT)",
    """
    CREATE TABLE books(id TEXT PRIMARY KEY NOT NULL, shelf TEXT REFERENCES shelves(id)
      ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED, title TEXT, maker TEXT)
    """,
    """
    CREATE TABLE loans(id TEXT PRIMARY KEY NOT NULL, book TEXT REFERENCES books(id)
      ON DELETE CASCADE ON UPDATE CASCADE, note TEXT, maker TEXT)
    """,
  ]

  /// Makes a shelf with books and loans, changes a key, merges two parents, or edits a row of any
  /// device.
  static func shelve(
    _ deviceName: String, _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let maker = Value.text(deviceName).sqlLiteral
    let shelves = try records("shelves WHERE maker = \(maker)", query)
    let books = try records("books WHERE maker = \(maker)", query)
    if shelves.isEmpty || books.isEmpty || random.chance(1, in: 5) {
      return furnish(maker, &random)
    }
    switch random.below(8) {
    case 0: return renamed(pick(from: shelves, &random), &random)
    case 1: return replaced(pick(from: shelves, &random), maker, &random)
    case 2: return rebound(pick(from: books, &random), &random)
    case 3: return merged("shelves", shelves, "books", "shelf", &random)
    case 4: return merged("books", books, "loans", "book", &random)
    default:
      let note = ValueMaker.text(&random).sqlLiteral
      if random.chance(1, in: 3) {
        return ["UPDATE books SET title = \(note) WHERE id = '\(pick(from: books, &random))'"]
      }
      return try pick("loans", &random, query).map {
        ["UPDATE loans SET note = \(note) WHERE id = '\($0)'"]
      } ?? []
    }
  }

  private static func furnish(_ maker: String, _ random: inout SeededRandom) -> [String] {
    let shelf = fresh("s-", &random)
    let books = (0..<2).map { _ in fresh("b-", &random) }
    return ["INSERT INTO shelves VALUES ('\(shelf)', 'made', \(maker))"]
      + books.map { "INSERT INTO books VALUES ('\($0)', '\(shelf)', 'made', \(maker))" }
      + books.map {
        "INSERT INTO loans VALUES ('\(fresh("k-", &random))', '\($0)', 'made', \(maker))"
      }
  }

  /// Changes a shelf's key, and the books before or after the change.
  private static func renamed(_ shelf: String, _ random: inout SeededRandom) -> [String] {
    let new = fresh("s-", &random)
    let statements = [
      "UPDATE shelves SET id = '\(new)' WHERE id = '\(shelf)'",
      "UPDATE books SET shelf = '\(new)' WHERE shelf = '\(shelf)'",
    ]
    return random.chance(1, in: 2) ? statements : statements.reversed()
  }

  /// Moves the books of a shelf to a new one. The shelf may be deleted only after the move.
  private static func replaced(
    _ shelf: String, _ maker: String, _ random: inout SeededRandom
  ) -> [String] {
    let new = fresh("s-", &random)
    let insert = "INSERT INTO shelves VALUES ('\(new)', 'new', \(maker))"
    let move = "UPDATE books SET shelf = '\(new)' WHERE shelf = '\(shelf)'"
    let delete = "DELETE FROM shelves WHERE id = '\(shelf)'"
    return [[insert, move, delete], [move, insert, delete], [move, delete, insert]][random.below(3)]
  }

  /// Changes a book's key. SQLite moves the loans with it, and some are edited after the change.
  private static func rebound(_ book: String, _ random: inout SeededRandom) -> [String] {
    let new = fresh("b-", &random)
    let change = "UPDATE books SET id = '\(new)' WHERE id = '\(book)'"
    if random.chance(1, in: 2) { return [change] }
    let note = ValueMaker.text(&random).sqlLiteral
    return [change, "UPDATE loans SET note = \(note) WHERE book = '\(new)'"]
  }

  /// Moves the children of one parent to another one, and deletes the first.
  private static func merged(
    _ table: String, _ parents: [String], _ children: String, _ column: String,
    _ random: inout SeededRandom
  ) -> [String] {
    let from = pick(from: parents, &random)
    let others = parents.filter { $0 != from }
    guard !others.isEmpty else { return [] }
    let to = pick(from: others, &random)
    return [
      "UPDATE \(children) SET \(column) = '\(to)' WHERE \(column) = '\(from)'",
      delete(table, from),
    ]
  }
}
