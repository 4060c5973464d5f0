import FerryPostgres

/// Entries of the audit log in the round trip of the audited changes.
enum PostgresAudit {
  static func append(
    _ mark: AuditMark?, _ action: AuditAction, of space: Int64, _ detail: String,
    to pipeline: inout PostgresPipeline
  ) {
    guard let mark else { return }
    pipeline.add(
      PostgresStatement(AuditEntry.appendOfSpace),
      PostgresParameters(mark.values(action, of: space, detail)))
  }
}
