/// Observes the work on a connection while a caller has it.
package struct PostgresObserver {
  /// The `application_name` of the work, at most 63 bytes. The server's log (`%a`) and
  /// `pg_stat_activity` show it. It goes with the statements of each transaction, and ends with it.
  package var applicationName: String
  /// Gets the names of the statements of a round trip at the start. The returned function is called
  /// at the end.
  package var roundTrip: (_ statements: [String]) -> (_ error: PostgresError?) -> Void

  package init(
    applicationName: String,
    roundTrip: @escaping (_ statements: [String]) -> (_ error: PostgresError?) -> Void
  ) {
    self.applicationName = applicationName
    self.roundTrip = roundTrip
  }

  static let naming = PostgresStatement.once("SELECT set_config('application_name', $1, true)")
}

extension PostgresPipeline {
  /// The names of the statements; those without a name are left out.
  var statementNames: [String] {
    commands.map(\.statement.name).filter { !$0.isEmpty } + (commits ? ["COMMIT"] : [])
  }
}
