import FerryProtocol

/// The way to capture the writes to a table.
enum TableCapture: Sendable, Equatable {
  /// Triggers of the mirror's own.
  case triggers
  /// Such triggers on the table and on each partition.
  case partitions(MirrorPartitions)
  /// The triggers of a group, for the mirrors of all spaces.
  case group(Int64, by: SpaceColumn)
  /// PostgreSQL's log: the mirror marks its own writes there.
  case log

  var partitions: MirrorPartitions? { if case .partitions(let found) = self { found } else { nil } }
  var group: Int64? { if case .group(let number, _) = self { number } else { nil } }

  /// The beginning of the triggers' names.
  func prefix(of mirror: Int64) -> String {
    group.map { "ferry_capture_\($0)_" } ?? "ferry_\(mirror)_"
  }
}

/// The triggers of a table that make PostgreSQL record each write of others, in the same transaction.
struct CaptureTriggers {
  /// The number of those with the capturing function.
  var count: Int64
  var countOfAll: Int64
  /// The statements to make the functions, and missing triggers.
  var statements: [String]
}

extension MirrorSQL {
  /// The capturing triggers; `nil` with a capture from the log.
  var triggers: CaptureTriggers? {
    switch capture {
    case .log: nil
    case .group(let group, let space): GroupCapture(sql: self, group: group, space: space).triggers
    case .partitions: StatementCapture(sql: self).triggers
    case .triggers:
      table.adoption?.space == nil && table.adoption?.condition == nil
        ? StatementCapture(sql: self).triggers : RowCapture(sql: self).triggers
    }
  }

  /// Creates a missing trigger.
  ///
  /// - Parameter relation: a partition of the table; `nil` for the table.
  func trigger(_ kind: String, of relation: String? = nil, _ clause: String) -> String {
    let name = capture.prefix(of: mirror) + kind
    return unlessPresent(
      name, in: "pg_trigger", prefix: "tg", of: relation, "CREATE TRIGGER \(name) \(clause)")
  }
}
