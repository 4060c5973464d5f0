import FerryProtocol

/// A query as a value, without a table: store it, compose it, and give it to any table.
///
/// ```swift
/// let open = Query().where(Field("done") == false).order(Field("due").ascending)
/// let firstOpen = open.limit(10)
/// let notes = try Note.all.applying(firstOpen).fetch(database)
/// ```
public struct Query: Sendable, Equatable, QueryBuilding {
  /// The condition for rows.
  public var condition = Condition.always
  /// The order; empty if the rows may come in any order.
  public var ordering: [Ordering] = []
  /// The columns of the result; empty for all.
  public var selection: [Name] = []
  /// True if equal rows of the result appear once.
  public var isDistinct = false
  /// The most rows; `nil` for all.
  public var limit: Int?
  /// The number of rows to leave out first.
  public var offset = 0

  /// Creates a query for all rows.
  public init() {}

  public var query: Query {
    get { self }
    set { self = newValue }
  }
}

/// A query for further refinement: ``Query`` or ``TableQuery``. Each call returns a new value.
public protocol QueryBuilding {
  /// The query.
  var query: Query { get set }
}

extension QueryBuilding {
  /// Adds a condition; a second one must be true as well.
  public func `where`(_ condition: Condition) -> Self {
    changed { $0.condition = $0.condition && condition }
  }
  /// Sorts the rows; a further order counts for rows equal in the earlier one.
  public func order(_ ordering: Ordering...) -> Self { changed { $0.ordering += ordering } }
  /// Chooses the columns of the result.
  public func select(_ columns: Name...) -> Self { changed { $0.selection = columns } }
  /// Leaves out duplicate rows of the result.
  public func distinct() -> Self { changed { $0.isDistinct = true } }
  /// Bounds the number of rows, after leaving out `offset` ones.
  public func limit(_ count: Int, offset: Int = 0) -> Self {
    changed { ($0.limit, $0.offset) = (count, offset) }
  }

  /// Adds the parts of another query: the condition and order of the other join the present ones,
  /// the selection and limit replace them.
  public func applying(_ other: Query) -> Self {
    changed {
      $0.condition = $0.condition && other.condition
      $0.ordering += other.ordering
      if !other.selection.isEmpty { $0.selection = other.selection }
      if other.isDistinct { $0.isDistinct = true }
      if let limit = other.limit { ($0.limit, $0.offset) = (limit, other.offset) }
    }
  }

  private func changed(_ change: (inout Query) -> Void) -> Self {
    var copy = self
    change(&copy.query)
    return copy
  }
}
