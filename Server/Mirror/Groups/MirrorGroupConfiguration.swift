/// The settings of a group of mirrors, in the file `group.json` of the group's folder. One table
/// serves many spaces, and a column names the space of each row.
package struct MirrorGroupConfiguration: Codable, Sendable, Equatable {
  /// A mirror's name of at most ``SpacePattern/groupNameMax`` characters.
  package var name: String
  /// The address of the spaces' server.
  package var server: String
  /// A space's name with `{}` in the place of the column's value.
  package var pattern: String
  /// The column with the space of a row; all tables have it, except shared ones.
  package var column: String
  package var database: String
  package var schema: String
  package var tables: [String]
  /// Tables whose rows travel in all spaces.
  package var shared: [String] = []
  /// The travelling parts, by table.
  package var adoptions: [String: MirrorAdoption]
  /// The way in which PostgreSQL records the writes of programs, for all spaces.
  package var capture: MirrorCapture
  /// The reason against the log, if the group has chosen triggers itself.
  package var captureReason: String?
  /// For all spaces; `nil` for a server without tokens.
  package var token: String?

  /// Creates the settings of a group from those of one mirror of it.
  ///
  /// - Parameter shared: further tables, whose rows travel in all spaces.
  package init(
    _ mirror: MirrorConfiguration, shared: [String] = [], column: String, pattern: String,
    token: String?
  ) {
    self.shared = shared
    (name, server, self.pattern, self.column) = (mirror.name, mirror.server, pattern, column)
    (database, schema) = (mirror.database, mirror.schema)
    (tables, adoptions, self.token) = (mirror.tables, mirror.adoptions, token)
    capture = mirror.capture
  }

  /// Returns the settings of the mirror for a value.
  ///
  /// - Throws: ``MirrorFault`` if no space can have the name.
  func mirror(for value: String) throws(MirrorFault) -> MirrorConfiguration {
    mirror(
      SpacePattern.mirror(of: name, for: value), space: try SpacePattern(pattern).space(for: value),
      value: value)
  }

  /// The settings of a mirror of the group, without a value.
  var withoutValue: MirrorConfiguration { mirror(name, space: pattern, value: "") }

  private func mirror(_ name: String, space: String, value: String) -> MirrorConfiguration {
    var mirror = MirrorConfiguration(
      name: name, server: server, space: space, database: database, schema: schema)
    mirror.tables = tables + shared
    mirror.adoptions = adoptions
    for table in tables {
      mirror.adoptions[table, default: MirrorAdoption()].space = SpaceColumn(column, value: value)
    }
    mirror.group = self.name
    (mirror.capture, mirror.captureReason) = (capture, captureReason)
    return mirror
  }
}
