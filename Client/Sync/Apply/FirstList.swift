import FerryProtocol

/// The rule for a pull list whose rows may be filled in beside their tables, in short transactions, before
/// one more exchanges the tables (SPEC.md §38); pure.
///
/// A list is visible whole or not at all, so it cannot be applied in slices. A list into empty
/// tables has another way: nothing here can differ from the filled rows until the tables are
/// exchanged.
struct FirstList {
  /// The state of the replica before the list.
  struct Replica: Equatable {
    /// The changes of the list, as far as they are counted before they are read.
    var changes = 0
    /// True if a pull was applied before, or the list replaces rows.
    var hasCursor = false
    /// True if an interceptor of the app sees each pulled change.
    var hasInterceptors = false
    /// True if deferred changes or open questions wait for changes of the list.
    var hasWaiting = false
    /// True if the file is in memory: no other process waits for it.
    var isInMemory = false
  }

  /// A tracked table before the list.
  struct Table: Equatable {
    /// True if changes of others are pulled into it now.
    var isTwoWay = true
    var isEmpty = true
    /// Whether this device has written to it.
    var hasOwnWrites = false
    /// Whether rows may have been written without a record of it.
    var isUnrecorded = false
    /// True if the key or a column has numbers chosen by this file.
    var hasNumbers = false
    /// True if it has rows of several spaces.
    var isShared = false
    /// True if a trigger of the user may fire.
    var hasUserTriggers = false
    /// True if the definition resolves conflicts itself (ON CONFLICT), or keeps a sequence
    /// (AUTOINCREMENT).
    var decidesItself = false
    /// The folded names of the parents in the table's foreign keys.
    var parents: Set<Name> = []

    /// Whether its rows may be exchanged for those of a copy. Own rows that were written and recorded since
    /// the copy was made come along.
    var isExchangeable: Bool {
      isTwoWay && !isUnrecorded && !hasNumbers && !isShared && !hasUserTriggers && !decidesItself
    }

    var isFillable: Bool { isExchangeable && isEmpty && !hasOwnWrites }
  }

  /// Returns true if rows of the list may be filled in at all.
  ///
  /// - Parameter changesMin: the fewest changes worth the work.
  static func isFillable(_ replica: Replica, changesMin: Int) -> Bool {
    !replica.hasCursor && !replica.hasInterceptors && !replica.hasWaiting && !replica.isInMemory
      && replica.changes >= changesMin
  }

  /// Returns the tables to fill, by folded names. A row's parents are filled, too, so the row's
  /// foreign keys can be checked.
  static func tables(_ tables: [Name: Table]) -> Set<Name> {
    var chosen = Set(tables.filter(\.value.isFillable).keys)
    var before = chosen.count + 1
    while chosen.count < before {
      before = chosen.count
      chosen = chosen.filter { tables[$0]?.parents.isSubset(of: chosen) ?? false }
    }
    return chosen
  }

  /// The effect of a change of the list.
  enum Step: Equatable {
    /// The whole row is written beside the table.
    case write
    /// A row beside the table is removed, if there is one.
    case remove
    /// The change is applied with the exchange, in order with the later ones of the same record.
    case leave
  }

  /// The most changes of a list left for the exchange, and the most bytes of their names and
  /// values. They are in memory until then.
  static let leftMax = 2_000
  static let leftBytesMax = 4 << 20

  private var left = Set<RecordKey>()
  private var leftCount = 0
  private var leftBytes = 0

  /// Returns the effect of the next change.
  ///
  /// - Parameter knowsAll: true if the change's table is filled and has all columns of the change.
  func step(for change: Change, knowsAll: Bool) -> Step {
    if left.contains(change.key) { return .leave }
    guard knowsAll else { return .leave }
    if change.state.deleted != nil && !change.state.isAlive { return .remove }
    return change.state.inserted == nil ? .leave : .write
  }

  /// Leaves a change to the exchange. Returns false if there are too many.
  mutating func leave(_ change: Change) -> Bool {
    left.insert(change.key)
    leftCount += 1
    leftBytes += change.key.record.utf8.count
    for column in change.state.columns { leftBytes += column.value.byteCount + 64 }
    return leftCount <= Self.leftMax && leftBytes <= Self.leftBytesMax
  }
}
