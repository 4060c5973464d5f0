import FerryProtocol

extension Workload {
  /// Sizes of transactions.
  package struct Sizes: Sendable, Equatable {
    /// Rows of a `post`.
    package var post = 2...5
    /// Rows of a `postLarge`: more than one packet holds.
    package var largePost = 1_100
    /// Rows written by an `editMany`.
    package var edits = 2...6

    package init() {}
  }

  /// Returns the statements of one action, as SQL text without parameters: one transaction, to run
  /// in this order. The list is empty if there are no rows to act on.
  ///
  /// They have the same effect on equal replicas. They never fail because of a sync between the
  /// planning and the execution.
  ///
  /// - Parameters:
  ///   - deviceName: The harness's name, under which the device's beats are kept.
  ///   - spaces: The spaces for rows of shared tables.
  package static func statements(
    for planned: PlannedAction, deviceName: String, level: Int, sizes: Sizes = Sizes(),
    spaces: [String] = [],
    query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    var random = SeededRandom(planned.seed, planned.action.rawValue)
    switch planned.action {
    case .addNote: return [addNote(level, &random)]
    case .reviveNote: return [try reviveNote(level, &random, query)]
    case .editNote:
      return try pick("notes", &random, query).map { [editNote($0, level, &random)] } ?? []
    case .deleteNote:
      return try pick("notes", &random, query).map { [delete("notes", $0)] } ?? []
    case .addList: return [addList(&random)]
    case .deleteList: return try deleteLists(&random, query)
    case .addItem:
      return try pick("lists", &random, query).map { [addItem(to: $0, level, &random)] } ?? []
    case .tickItem:
      return try pick("items", &random, query).map { [editItem($0, level, &random)] } ?? []
    case .post:
      let span = sizes.post.upperBound - sizes.post.lowerBound + 1
      return [post(sizes.post.lowerBound + random.below(span), &random)]
    case .postLarge: return [post(sizes.largePost, &random)]
    case .beat: return [beat(deviceName, level)]
    case .editMany: return try editMany(level, sizes, &random, query)
    case .tally: return try tally(&random, query)
    case .batch, .answer: return []
    case .claim: return try claim(&random, query)
    case .draft: return try draft(&random, query)
    case .arrange: return try arrange(deviceName, &random, query)
    case .grow: return try grow(&random, query)
    case .paint: return paint(level, &random)
    case .label: return try label(&random, query)
    case .sheet: return try sheet(&random, query)
    case .enrol: return try enrol(&random, query)
    case .share: return try share(deviceName, spaces, &random, query)
    case .shelve: return try shelve(deviceName, &random, query)
    case .stray: return try stray(&random, query)
    case .branch: return try branch(&random, query)
    case .odd: return try odd(&random, query)
    case .stack: return try stack(deviceName, &random, query)
    case .order: return try order(&random, query)
    }
  }

  // MARK: Notes

  /// Adds a note of the device's own, or one open to any device.
  private static func addNote(_ level: Int, _ random: inout SeededRandom) -> String {
    let isShared = random.chance(3, in: 5)
    let id = isShared ? sharedNotes[random.below(sharedNotes.count)] : fresh("n-", &random)
    return replaceNote(id, level, &random)
  }

  /// Prefers a missing shared note.
  private static func reviveNote(
    _ level: Int, _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> String {
    let here = Set(try records("notes", query))
    let gone = sharedNotes.filter { !here.contains($0) }
    let choices = gone.isEmpty ? sharedNotes : gone
    let id = choices[random.below(choices.count)]
    guard random.chance(1, in: 4) else { return replaceNote(id, level, &random) }
    let (columns, values) = insertNote(level, &random)
    return "INSERT OR REPLACE INTO notes(id, \(columns)) VALUES ('\(id)', \(values))"
  }

  private static func replaceNote(_ id: String, _ level: Int, _ random: inout SeededRandom)
    -> String
  {
    let (columns, values) = insertNote(level, &random)
    return """
      INSERT INTO notes(id, \(columns)) VALUES ('\(id)', \(values)) \
      ON CONFLICT(id) DO UPDATE SET title = excluded.title, stars = excluded.stars
      """
  }

  /// Inserts a note; not every insert names every column.
  private static func insertNote(
    _ level: Int, _ random: inout SeededRandom
  ) -> (columns: String, values: String) {
    var columns = editableColumns(level: level)
    if random.chance(1, in: 4) { columns.removeAll { $0 != "title" && $0 != "stars" } }
    let values = columns.map { ValueMaker.makeNoteValue($0, &random).sqlLiteral }
    return (columns.joined(separator: ", "), values.joined(separator: ", "))
  }

  private static func editNote(_ id: String, _ level: Int, _ random: inout SeededRandom) -> String {
    let columns = editableColumns(level: level)
    let first = random.below(columns.count)
    var chosen = [columns[first]]
    if random.chance(1, in: 3) { chosen.append(columns[(first + 1) % columns.count]) }
    let sets = chosen.map { "\($0) = \(ValueMaker.makeNoteValue($0, &random).sqlLiteral)" }
    return "UPDATE notes SET \(sets.joined(separator: ", ")) WHERE id = '\(id)'"
  }

  // MARK: Paints

  /// Inserts or edits any of a few paints; any device may do so.
  private static func paint(_ level: Int, _ random: inout SeededRandom) -> [String] {
    let (id, column) = ("b\(random.below(6))", paintColumn(level: level))
    if random.chance(1, in: 8) { return [delete("paints", id)] }
    let value = ValueMaker.text(&random).sqlLiteral
    return [
      """
      INSERT INTO paints(id, \(column)) VALUES ('\(id)', \(value)) \
      ON CONFLICT(id) DO UPDATE SET \(column) = excluded.\(column)
      """
    ]
  }

  // MARK: Lists and items

  private static func addList(_ random: inout SeededRandom) -> String {
    let id = fresh("l-", &random)
    return "INSERT INTO lists(id, name) VALUES ('\(id)', \(ValueMaker.text(&random).sqlLiteral))"
  }

  /// Deletes one list, or several at once.
  private static func deleteLists(
    _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let lists = try records("lists", query)
    guard !lists.isEmpty else { return [] }
    let count = random.chance(1, in: 2) ? 1 : 2 + random.below(2)
    return (0..<count).map { _ in delete("lists", pick(from: lists, &random)) }
  }

  private static func addItem(
    to list: String, _ level: Int, _ random: inout SeededRandom
  ) -> String {
    let id = fresh("i-", &random)
    let label = ValueMaker.text(&random).sqlLiteral
    let weight = ValueMaker.weight(&random).sqlLiteral
    // The list may have gone since it was chosen.
    return """
      INSERT INTO items(id, list, label, done\(level >= 2 ? ", weight" : "")) \
      SELECT '\(id)', id, \(label), 0\(level >= 2 ? ", \(weight)" : "") FROM lists \
      WHERE id = '\(list)'
      """
  }

  private static func editItem(_ id: String, _ level: Int, _ random: inout SeededRandom) -> String {
    var sets = ["done = 1 - done"]
    if random.chance(1, in: 3) { sets.append("label = \(ValueMaker.text(&random).sqlLiteral)") }
    if level >= 2 && random.chance(1, in: 2) {
      sets.append("weight = \(ValueMaker.weight(&random).sqlLiteral)")
    }
    return "UPDATE items SET \(sets.joined(separator: ", ")) WHERE id = '\(id)'"
  }

  static func delete(_ table: String, _ id: String) -> String {
    "DELETE FROM \(table) WHERE id = '\(id)'"
  }

  // MARK: Transactions and beats

  private static func post(_ size: Int, _ random: inout SeededRandom) -> String {
    let txn = fresh("t", &random)
    return """
      WITH RECURSIVE k(place) AS ( \
      SELECT 1 UNION ALL SELECT place + 1 FROM k WHERE place < \(size)) \
      INSERT INTO ledger(id, txn, size, place) \
      SELECT '\(txn)-' || printf('%04d', place), '\(txn)', \(size), place FROM k
      """
  }

  private static func beat(_ deviceName: String, _ level: Int) -> String {
    let (table, column) = beats(level: level)
    return """
      INSERT INTO \(table)(id, \(column)) VALUES (\(Value.text(deviceName).sqlLiteral), 1) \
      ON CONFLICT(id) DO UPDATE SET \(column) = \(column) + 1
      """
  }

  private static func editMany(
    _ level: Int, _ sizes: Sizes, _ random: inout SeededRandom,
    _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let notes = try records("notes", query)
    let items = try records("items", query)
    guard !notes.isEmpty || !items.isEmpty else { return [] }
    let span = sizes.edits.upperBound - sizes.edits.lowerBound + 1
    return (0..<sizes.edits.lowerBound + random.below(span)).map { _ in
      if items.isEmpty || !notes.isEmpty && random.chance(2, in: 3) {
        return editNote(pick(from: notes, &random), level, &random)
      }
      return editItem(pick(from: items, &random), level, &random)
    }
  }

  // MARK: Choosing

  static func pick(
    _ table: String, _ random: inout SeededRandom, _ query: (String) throws -> [[Value]]
  ) rethrows -> String? {
    let records = try records(table, query)
    return records.isEmpty ? nil : pick(from: records, &random)
  }

  /// Picks a record: half of the time one of the first few, so there is always contention.
  static func pick<Record>(from records: [Record], _ random: inout SeededRandom) -> Record {
    let reach = random.chance(1, in: 2) ? min(4, records.count) : records.count
    return records[random.below(reach)]
  }

  static func records(
    _ table: String, _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    try query("SELECT id FROM \(table) ORDER BY id").compactMap { row in
      if case .text(let id)? = row.first { id } else { nil }
    }
  }

  /// Returns an identifier made only by this action; short enough for Swift to keep without memory.
  package static func fresh(_ prefix: String, _ random: inout SeededRandom) -> String {
    let digits = String(random.next() >> 23, radix: 36)
    return prefix + String(repeating: "0", count: max(0, 8 - digits.count)) + digits
  }
}
