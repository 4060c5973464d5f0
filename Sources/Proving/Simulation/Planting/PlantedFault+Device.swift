import FerryPersistence
import FerryProtocol
import FerrySQLite

// Mistakes of a device, as temporary triggers on the connection for its process's writes. Like a
// user's triggers, they act within Ferry's own statements, and go with the process. Triggers with
// calls of Ferry's functions have names of Ferry's: the guard of users' statements permits no
// others.
extension PlantedFault {
  /// Plants the mistake in a device's process.
  ///
  /// - Parameter ledger: the process's connection, with the names of the space's ledger.
  func plant(on ledger: SQLiteConnection) throws {
    if self == .deletesMeasured {
      try ledger.addFunction("ferry_planted", argumentCount: 0, callers: .all) { _, answer in
        answer.fail(
          SQLiteError(code: DatabaseError.refusedCode, message: "ferry: the row is too large"))
      }
    }
    for statement in deviceStatements { try ledger.execute(statement) }
  }

  private var deviceStatements: [String] {
    switch self {
    case .acknowledgeByRecord:
      [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS planted AFTER UPDATE OF state ON main.ferry_packets
        WHEN NEW.state = 'acknowledged' AND OLD.state <> 'acknowledged' BEGIN
          UPDATE ferry_replica SET removed_order = (SELECT max(seq) FROM ferry_operations);
          DELETE FROM ferry_operations WHERE state = 0
            AND seq > (SELECT max(to_order) FROM ferry_packets)
            AND record IN (SELECT record FROM ferry_operations
              WHERE seq BETWEEN NEW.from_order AND NEW.to_order);
        END
        """
      ]
    case .replaceOnApply:
      [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS ferry_planted AFTER UPDATE OF stars ON main.notes
        WHEN ferry_applying('notes', NEW.id) AND NEW.body IS OLD.body AND NEW.body IS NOT NULL BEGIN
          UPDATE notes SET body = NULL WHERE id = NEW.id;
        END
        """
      ]
    case .archiveForgotten:
      [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS planted AFTER UPDATE OF state ON main.ferry_operations
        WHEN NEW.state = 1 BEGIN
          UPDATE ferry_replica SET removed_order = max(removed_order, NEW.seq);
          DELETE FROM ferry_operations WHERE seq = NEW.seq;
        END
        """
      ]
    case .packetsMergedAgain:
      [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS planted AFTER UPDATE OF apart ON main.ferry_operations
        WHEN NEW.apart = 1 BEGIN UPDATE ferry_operations SET apart = 0 WHERE seq = NEW.seq; END
        """
      ]
    case .packetNotFrozen: [Self.unfreezing]
    case .pendingNotShielded: Self.hiding
    case .valuesNotMoved:
      ["slots", "labels"].map { table in
        """
        CREATE TEMP TRIGGER IF NOT EXISTS ferry_planted_\(table) BEFORE DELETE ON main.\(table)
        WHEN ferry_aside('', '') BEGIN SELECT RAISE(IGNORE); END
        """
      }
    case .valuesNotFollowed:
      Self.pullMarks + [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS planted BEFORE UPDATE OF code ON main.tags
        WHEN EXISTS (SELECT 1 FROM planted_pull) BEGIN SELECT RAISE(IGNORE); END
        """
      ]
    case .cascadesTogether:
      // The delete of an orphan is recorded as concurrent.
      Self.pullMarks + [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS planted AFTER INSERT ON main.ferry_operations
        WHEN NEW.kind = 'delete' AND EXISTS (SELECT 1 FROM planted_pull) BEGIN
          UPDATE planted_pull SET grp = coalesce(grp, NEW.grp);
          UPDATE ferry_operations SET grp = (SELECT grp FROM planted_pull) WHERE seq = NEW.seq;
          DELETE FROM ferry_operations WHERE seq = NEW.seq AND concurrent = 1;
        END
        """
      ]
    case .lostRowUnlisted:
      [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS planted BEFORE INSERT ON main.ferry_conflicts
        WHEN NEW.sequence IS NULL AND NEW.tbl IN ('boughs', 'twigs', 'vines')
        BEGIN SELECT RAISE(IGNORE); END
        """
      ]
    case .lostRowSeen:
      [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS planted BEFORE UPDATE OF base ON main.ferry_operations
        WHEN NEW.base = 0 AND NEW.kind = 'delete' BEGIN SELECT RAISE(IGNORE); END
        """
      ]
    case .formerRowForgotten:
      [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS planted BEFORE INSERT ON main.ferry_former_rows
        BEGIN SELECT RAISE(IGNORE); END
        """
      ]
    case .spellingNotFollowed:
      [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS planted AFTER INSERT ON main.ferry_tables
        WHEN NEW.is_shared = 0
        BEGIN UPDATE ferry_tables SET is_shared = 1 WHERE name = NEW.name; END
        """
      ]
    case .migrationNotNoticed:
      [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS planted AFTER UPDATE OF since ON main.ferry_tables
        WHEN NEW.since IS NOT NULL BEGIN
          UPDATE ferry_tables SET since = NULL, remade = 0 WHERE name = NEW.name;
        END
        """
      ]
    case .deletesMeasured:
      [
        """
        CREATE TEMP TRIGGER IF NOT EXISTS ferry_planted BEFORE DELETE ON main.essays
        WHEN NOT ferry_applying('essays', OLD.id)
          AND (SELECT sum(length(value)) FROM json_each(
            json_array(OLD.a, OLD.b, OLD.c, OLD.d, OLD.e, OLD.f))) > 16000
        BEGIN SELECT ferry_planted(); END
        """
      ]
    case .parentDeletedEarly:
      // Such a delete is kept until the end of the list.
      ["shelves", "books"].map { table in
        """
        CREATE TEMP TRIGGER IF NOT EXISTS planted_\(table) AFTER INSERT ON main.ferry_kept
        WHEN NEW.tbl = '\(table)' AND NEW.reason LIKE 'records here refer to it%'
        BEGIN DELETE FROM \(table) WHERE id = NEW.record; END
        """
      }
    default: []
    }
  }

  /// Plants the mistake in the copies of a first list, after a slice.
  func plantInCopies(on connection: SQLiteConnection) {
    guard self == .filledRowForgotten else { return }
    let copies = try? connection.rows(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'ferry*_first_*'"
    ) { quoted($0.name(0)) }
    for copy in copies ?? [] {
      // A foreign key may restrict the delete, and some tables have no rowid.
      let last = "rowid = (SELECT max(rowid) FROM \(copy))"
      if let count = try? connection.run("DELETE FROM \(copy) WHERE \(last)"), count > 0 { return }
    }
  }

  /// The newest packet is opened as soon as there are later edits, whether it was sent or not.
  private static let unfreezing = """
    CREATE TEMP TRIGGER IF NOT EXISTS planted AFTER INSERT ON main.ferry_operations
    WHEN 'frozen' = (SELECT state FROM ferry_packets ORDER BY number DESC LIMIT 1) BEGIN
      UPDATE ferry_replica
      SET tail = (SELECT dependency FROM ferry_packets ORDER BY number DESC LIMIT 1);
      DELETE FROM ferry_packets WHERE number = (SELECT max(number) FROM ferry_packets);
    END
    """

  /// A pull finds no pending operations: they have a separate state while it moves the cursor and
  /// applies pages.
  private static let hiding = [
    """
    CREATE TEMP TRIGGER IF NOT EXISTS planted_begin BEFORE UPDATE OF applied ON main.ferry_replica
    BEGIN UPDATE ferry_operations SET state = 9 WHERE state = 0; END
    """,
    """
    CREATE TEMP TRIGGER IF NOT EXISTS planted_end AFTER UPDATE OF clock, replacing
    ON main.ferry_replica BEGIN UPDATE ferry_operations SET state = 0 WHERE state = 9; END
    """,
  ]

  /// `planted_pull` has one row while a pull applies pages: it moves the cursor first and the clock
  /// last. The other statement with the cursor sets `replacing` as well.
  private static let pullMarks = [
    "CREATE TEMP TABLE IF NOT EXISTS planted_pull(grp INTEGER)",
    """
    CREATE TEMP TRIGGER IF NOT EXISTS planted_begin BEFORE UPDATE OF applied ON main.ferry_replica
    BEGIN DELETE FROM planted_pull; INSERT INTO planted_pull VALUES (NULL); END
    """,
    """
    CREATE TEMP TRIGGER IF NOT EXISTS planted_end AFTER UPDATE OF clock, replacing
    ON main.ferry_replica BEGIN DELETE FROM planted_pull; END
    """,
  ]
}
