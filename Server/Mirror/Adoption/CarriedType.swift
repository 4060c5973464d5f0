import FerryProtocol

/// A type of a company's column without a counterpart on devices: its values travel as texts.
///
/// The text is PostgreSQL's own, and an array is a JSON array. A text is the same whatever the
/// settings of a session are, and reads back as an equal value.
package struct CarriedType: Codable, Sendable, Equatable {
  /// The form of the text.
  package enum Form: String, Codable, Sendable {
    /// The type's text.
    case text
    /// The text of the type's output function: the cast to `text` adds something.
    case output
    /// XML, read as content.
    case xml
    /// A JSON array of numbers, truth values or times.
    case json
    /// A JSON array of texts.
    case texts
  }

  /// The schema of the type.
  package var schema: String
  package var name: String
  package var form: Form
  /// True if settings of the session change the text.
  package var followsSettings: Bool
  /// True if no value is long.
  package var isShort: Bool

  package init(
    schema: String, name: String, form: Form = .text, followsSettings: Bool = false,
    isShort: Bool = false
  ) {
    (self.schema, self.name, self.form) = (schema, name, form)
    (self.followsSettings, self.isShort) = (followsSettings, isShort)
  }

  var isArray: Bool { form == .json || form == .texts }

  /// The type in SQL. A quoted name has no special meaning: `bit` would be a single one.
  var sql: String { "\(quoted(Name(schema))).\(quoted(Name(name)))" }

  /// Returns the SQL to convert a value into a text.
  func encoded(_ value: String) -> String {
    if followsSettings { return Self.written(value, form) }
    return switch form {
    case .text, .xml: "\(value)::text"
    // PL/pgSQL would end a condition with the first THEN outside of parentheses.
    case .output: "(CASE WHEN \(value) IS NOT NULL THEN pg_catalog.format('%s', \(value)) END)"
    case .json: "pg_catalog.to_json(\(value))::text"
    case .texts: "pg_catalog.to_json(\(value)::text[])::text"
    }
  }

  /// Returns the SQL to convert a text into a value.
  func decoded(_ text: String) -> String {
    switch form {
    case .text, .output: "\(text)::\(sql)"
    case .xml: "XMLPARSE(CONTENT \(text))"
    case .json, .texts:
      """
      (SELECT r.v FROM pg_catalog.json_to_record(
        pg_catalog.json_build_object('v', (\(text))::json)) AS r(v text[]))::\(sql)
      """
    }
  }

  /// Returns the SQL of whether JSON loses the places of an array's elements; `nil` for other types.
  func fault(_ value: String) -> String? {
    isArray ? "pg_catalog.array_dims(\(value)) ~ '[[](?!1:)'" : nil
  }

  // MARK: The function

  private static let function = "\(MirrorSQL.ledger).written"

  /// Returns the SQL of a value's text, whatever the settings of the session are.
  static func written(_ value: String, _ form: Form = .text) -> String {
    "\(function)(\(value), \(quoted(postgres: form.rawValue)))"
  }

  /// Makes the function that writes texts with settings of its own: those of a program or a database
  /// may be others. Any text that it writes is read alike with all settings.
  static let makeFunction = """
    DO \(quoted(postgres: """
      BEGIN
        IF to_regprocedure('\(function)(anyelement, text)') IS NULL THEN
          EXECUTE \(quoted(postgres: definition));
        END IF;
      END
      """));
    """

  private static let definition = """
    CREATE FUNCTION \(function)(value anyelement, form text) RETURNS text
    LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp SET DateStyle = 'ISO, YMD' SET IntervalStyle = 'iso_8601'
    SET TimeZone = 'UTC' SET extra_float_digits = 1 SET bytea_output = 'hex'
    AS \(quoted(postgres: """
      BEGIN
        IF form = 'json' THEN RETURN to_json(value)::text; END IF;
        IF form = 'texts' THEN RETURN to_json(value::text[])::text; END IF;
        RETURN value::text;
      END
      """))
    """
}
