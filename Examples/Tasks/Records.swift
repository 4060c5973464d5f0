import Ferry

/// A list of tasks.
struct TaskList: Codable, Sendable, Equatable, TableRecord {
  var id = "\(UniqueID.generate())"
  /// The space that the list belongs to: the user's own one, or one that people share.
  var space: String
  var name: String

  static let table = Table<TaskList>(
    "lists", [.text("id").primaryKey(), .text("space").notNull(), .text("name").notNull()])
}

/// A task of a list.
struct Todo: Codable, Sendable, Equatable, TableRecord {
  var id = "\(UniqueID.generate())"
  /// The space of its list.
  var space: String
  var list: String
  var title: String
  var done = false

  static let table = Table<Todo>(
    "tasks",
    [
      .text("id").primaryKey(), .text("space").notNull(), .text("list").notNull(),
      .text("title").notNull(),
      .integer("done").notNull().default(false),
    ], indexes: [IndexDefinition("list")])
}

/// A list with its tasks, as the app shows it.
struct Section: Sendable, Equatable {
  var list: TaskList
  var tasks: [Todo]

  /// Reads all lists by name, with their tasks in the order of their creation.
  static let all: @Sendable (Database) throws -> [Section] = { database in
    let lists = try TaskList.all.order(Field("name").ascending, Field("id").ascending)
      .fetch(database)
    return try lists.map { list in
      let tasks = Todo.all.where(Field("list") == list.id).order(Field("id").ascending)
      return Section(list: list, tasks: try tasks.fetch(database))
    }
  }
}
