import FerryProtocol

// Tables whose rows belong to two spaces, and move between them. Rows with a worth are *tokens*:
// they are never deleted, only their maker moves them, and they always belong to a space.
extension Workload {
  /// The tables, and their column with the space of each row. Tasks have text keys, and each device
  /// counts its own chores.
  package static let shared: (tables: [Name], column: Name) = (["tasks", "chores"], "list")

  /// Makes the tables on devices whose files take part in two spaces.
  package static let sharedSchema = [
    """
    CREATE TABLE tasks(id TEXT PRIMARY KEY NOT NULL, list TEXT, title TEXT, worth INTEGER, maker TEXT)
    """,
    "CREATE TABLE chores(id INTEGER PRIMARY KEY, list TEXT, title TEXT, worth INTEGER, maker TEXT)",
  ]

  /// A column of the tasks which some devices rename before their file joins the other space. Both
  /// spaces keep the first name.
  package static let sharedRename: (table: Name, from: Name, to: Name) = (
    "tasks", "title", "heading"
  )

  /// Tasks with writes, moves and deletes from all devices.
  private static let sharedTasks = (0..<6).map { "t\($0)" }

  /// Makes or moves tokens, or writes other rows.
  ///
  /// - Parameter spaces: the device's own space, and the space shared by all devices.
  static func share(
    _ deviceName: String, _ spaces: [String], _ random: inout SeededRandom,
    _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    guard spaces.count > 1 else { return [] }
    let lists = spaces.map { Value.text($0).sqlLiteral }
    let maker = Value.text(deviceName).sqlLiteral
    let isCounted = random.chance(1, in: 3)
    let table = isCounted ? "chores" : "tasks"
    switch random.below(8) {
    case 0:
      let values = "\(lists[random.below(2)]), 'made', \(1 + random.below(9)), \(maker)"
      let id = isCounted ? "NULL" : "'\(fresh("k-", &random))'"
      return ["INSERT INTO \(table) VALUES (\(id), \(values))"]
    case 1...3: return [moveTokens(of: maker, in: table, lists, &random)]
    default:
      return isCounted
        ? chore(maker, lists, &random) : try task(maker, lists, &random, query)
    }
  }

  /// Moves one token of a device, or exchanges the spaces of all of them.
  private static func moveTokens(
    of maker: String, in table: String, _ lists: [String], _ random: inout SeededRandom
  ) -> String {
    let other = "CASE list WHEN \(lists[0]) THEN \(lists[1]) ELSE \(lists[0]) END"
    let tokens = "maker = \(maker) AND worth > 0"
    if random.chance(1, in: 4) { return "UPDATE \(table) SET list = \(other) WHERE \(tokens)" }
    return """
      UPDATE \(table) SET list = \(other) WHERE id = (
        SELECT id FROM \(table) WHERE \(tokens) ORDER BY id LIMIT 1 OFFSET \(random.below(3)))
      """
  }

  /// Writes, moves or deletes one of the contended tasks of all devices, or edits any.
  private static func task(
    _ maker: String, _ lists: [String], _ random: inout SeededRandom,
    _ query: (String) throws -> [[Value]]
  ) rethrows -> [String] {
    let title = ValueMaker.text(&random).sqlLiteral
    let list = lists[random.below(lists.count)]
    let tasks = try records("tasks", query)
    let isRenamed = try !query(
      "SELECT 1 FROM pragma_table_info('tasks') WHERE name = '\(sharedRename.to)'"
    ).isEmpty
    let name = isRenamed ? sharedRename.to : sharedRename.from
    let place = random.below(sharedTasks.count)
    let task = sharedTasks[place]
    switch tasks.isEmpty ? 0 : random.below(12) {
    case 0...2:
      // Each of them has a home, so two devices rarely insert one in both spaces.
      let home = lists[place % lists.count]
      return [
        """
        INSERT INTO tasks VALUES ('\(task)', \(home), \(title), 0, \(maker)) \
        ON CONFLICT(id) DO UPDATE SET \(name) = excluded.\(name)
        """
      ]
    case 3, 4:
      return ["UPDATE tasks SET \(name) = \(title) WHERE id = '\(pick(from: tasks, &random))'"]
    case 5...7: return ["UPDATE tasks SET list = \(list), \(name) = \(title) WHERE id = '\(task)'"]
    case 8: return ["UPDATE tasks SET list = 'nowhere' WHERE id = '\(task)'"]
    case 9: return ["UPDATE tasks SET list = \(list) WHERE list = 'nowhere'"]
    case 10:
      return ["INSERT OR REPLACE INTO tasks VALUES ('\(task)', \(list), \(title), 0, \(maker))"]
    default: return ["DELETE FROM tasks WHERE id = '\(task)'"]
    }
  }

  /// Makes a chore, or edits, moves, renumbers or deletes one other than a token.
  private static func chore(
    _ maker: String, _ lists: [String], _ random: inout SeededRandom
  ) -> [String] {
    let title = ValueMaker.text(&random).sqlLiteral
    let list = lists[random.below(lists.count)]
    let chosen = """
      WHERE id = (SELECT id FROM chores WHERE worth = 0 ORDER BY id LIMIT 1 OFFSET \(random.below(4)))
      """
    switch random.below(10) {
    case 0...2: return ["INSERT INTO chores VALUES (NULL, \(list), \(title), 0, \(maker))"]
    case 3:
      return ["UPDATE chores SET title = \(title) WHERE id = (SELECT max(id) FROM chores)"]
    case 4, 5: return ["UPDATE chores SET list = \(list) \(chosen)"]
    case 6: return ["UPDATE chores SET list = 'nowhere' \(chosen)"]
    case 7: return ["UPDATE chores SET list = \(list) WHERE list = 'nowhere'"]
    case 8: return ["UPDATE chores SET id = (SELECT max(id) + 1 FROM chores) \(chosen)"]
    default: return ["DELETE FROM chores \(chosen)"]
    }
  }
}
