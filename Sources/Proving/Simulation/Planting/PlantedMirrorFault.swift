/// Known mistakes of mirrors, as SQL for the database of a world's mirrors, once the tables are there.
package enum PlantedMirrorFault: String, Sendable, CaseIterable {
  /// A program's write is committed, and not captured.
  case notCaptured
  /// A device's change does not reach the table.
  case notApplied
  /// A company's answer to a refused row is dropped: the row is on devices alone.
  case refusalForgotten
  /// A company's answer has no reason: the author of the row hears of nothing.
  case reasonForgotten
  /// A row changed by a trigger of the company does not go back to the devices.
  case normalisationForgotten
  /// A change of a table's definition loses the writes captured before.
  case definitionLosesWrites

  /// True if only worlds with companies' rules show it.
  package var needsRules: Bool {
    switch self {
    case .notCaptured, .notApplied: false
    case .refusalForgotten, .reasonForgotten, .normalisationForgotten, .definitionLosesWrites:
      true
    }
  }

  /// The SQL. It makes a function `planted`.
  package var statements: String {
    switch self {
    case .notCaptured:
      Self.onCaptured("IF NEW.kind = 'I' THEN RETURN NULL; END IF;")
    case .notApplied:
      // A mirror returns the row of a trigger that discards an update, so the answer is dropped, too.
      """
      CREATE FUNCTION planted_answer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.kind = 'A' THEN RETURN NULL; END IF; RETURN NEW; END $$;
      CREATE TRIGGER planted BEFORE INSERT ON ferry_mirror.captured
        FOR EACH ROW EXECUTE FUNCTION planted_answer();
      CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF current_setting('ferry.mirror', true) <> '' THEN RETURN NULL; END IF; RETURN NEW; END $$;
      DO $$ DECLARE name text; BEGIN
        FOR name IN SELECT schema FROM ferry_mirror.mirrors LOOP
          EXECUTE format(
            'CREATE TRIGGER planted BEFORE UPDATE ON %I.notes FOR EACH ROW EXECUTE FUNCTION planted()', name);
        END LOOP; END $$;
      """
    case .refusalForgotten:
      Self.onCaptured("IF NEW.reason IS NOT NULL THEN RETURN NULL; END IF;")
    case .reasonForgotten: Self.onCaptured("NEW.reason := NULL;")
    case .normalisationForgotten:
      Self.onCaptured("IF NEW.kind = 'A' AND NEW.reason IS NULL THEN RETURN NULL; END IF;")
    case .definitionLosesWrites:
      """
      CREATE FUNCTION planted() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
        DELETE FROM ferry_mirror.captured; END $$;
      CREATE EVENT TRIGGER planted ON ddl_command_end WHEN TAG IN ('ALTER TABLE')
        EXECUTE FUNCTION planted();
      """
    }
  }

  private static func onCaptured(_ statement: String) -> String {
    """
    CREATE FUNCTION planted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      \(statement) RETURN NEW; END $$;
    CREATE TRIGGER planted BEFORE INSERT ON ferry_mirror.captured
      FOR EACH ROW EXECUTE FUNCTION planted();
    """
  }
}
