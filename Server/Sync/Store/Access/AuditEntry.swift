import FerryProtocol

/// The kind of a change in the audit log. The raw values are stored and sent.
package enum AuditAction: String, Sendable, CaseIterable {
  case spaceCreated = "space_created"
  case retentionSet = "retention_set"
  case schemaApplied = "schema_applied"
  case spacePruned = "space_pruned"
  case missionPublished = "mission_published"
  case missionRetracted = "mission_retracted"
  case bundleRolledOut = "bundle_rolled_out"
  case bundleWithdrawn = "bundle_withdrawn"
  case keyRenewed = "key_renewed"
  case tokenCreated = "token_created"
  case tokenRotated = "token_rotated"
  case tokenRevoked = "token_revoked"
  case memberAdded = "member_added"
  case memberChanged = "member_changed"
  case memberRemoved = "member_removed"
  case invitationCreated = "invitation_created"
  case invitationRevoked = "invitation_revoked"
}

/// The principal that causes a change, and the time. A store writes the audit entry in the same
/// transaction as the change.
package struct AuditMark: Sendable, Equatable {
  package let principal: Principal
  /// The wall clock, milliseconds since 1970.
  package let at: Int64

  package init(_ principal: Principal, at: Int64) {
    self.principal = principal
    self.at = at
  }

  /// Returns the entry of a change.
  package func entry(
    _ action: AuditAction, space: SpaceName? = nil, _ detail: String = ""
  ) -> AuditEntry {
    AuditEntry(
      number: 0, at: at, principal: principal.id, action: action.rawValue, space: space,
      detail: detail)
  }
}

extension StoredToken {
  /// Returns the entry of a change of this token; `nil` without a mark.
  func entry(_ action: AuditAction, by mark: AuditMark?) -> AuditEntry? {
    mark?.entry(action, space: grants.onlySpace, text)
  }
}

/// One line of the audit log.
package struct AuditEntry: Sendable, Equatable {
  /// The place in the log, from 1; assigned by the store.
  package var number: Int64
  /// Milliseconds since 1970.
  package var at: Int64
  /// A principal's identifier.
  package var principal: String
  /// A raw value of ``AuditAction``.
  package var action: String
  package var space: SpaceName?
  /// For people.
  package var detail: String

  package init(
    number: Int64, at: Int64, principal: String, action: String, space: SpaceName?,
    detail: String
  ) {
    self.number = number
    self.at = at
    self.principal = principal
    self.action = action
    self.space = space
    self.detail = detail
  }
}

/// The part of the audit log to read, in the log's order.
package struct AuditQuery: Sendable, Equatable {
  /// Entries of one answer at most.
  package static let countMax = 1_000

  /// Entries about one space only.
  package var space: SpaceName?
  /// Entries at or after a moment, milliseconds since 1970.
  package var since: Int64
  /// Entries after this number.
  package var after: Int64
  /// At most so many entries.
  package var limit: Int

  package init(
    space: SpaceName? = nil, since: Int64 = 0, after: Int64 = 0, limit: Int = countMax
  ) {
    self.space = space
    self.since = since
    self.after = after
    self.limit = min(max(1, limit), Self.countMax)
  }
}
