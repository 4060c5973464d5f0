/// The action by which a client can handle an error.
public enum ProblemAction: String, Sendable {
  /// The same request may succeed later.
  case retry
  /// The request itself has to change.
  case fix
  /// The client's view of the space is out of date; it pulls from the start and goes on.
  case resynchronise
}

/// Stable codes of wire errors. New ones may come; the HTTP status gives the meaning of an unknown
/// one.
public enum ProblemCode: String, Sendable, CaseIterable {
  case malformedMessage = "malformed_message"
  case limitExceeded = "limit_exceeded"
  case unsupportedCoding = "unsupported_coding"
  case invalidCursor = "invalid_cursor"
  case unauthorized
  case forbidden
  case deviceTaken = "device_taken"
  case cursorRequired = "cursor_required"
  case storageQuota = "storage_quota"
  case writeQuota = "write_quota"
  case streamQuota = "stream_quota"
  case unknownSpace = "unknown_space"
  case unknownInvitation = "unknown_invitation"
  case notFound = "not_found"
  case methodNotAllowed = "method_not_allowed"
  case operationRefused = "operation_refused"
  case schemaConflict = "schema_conflict"
  case schemaLosses = "schema_losses"
  case missionConflict = "mission_conflict"
  case uploadConflict = "upload_conflict"
  case contentMismatch = "content_mismatch"
  case uploadQuota = "upload_quota"
  case upgradeRequired = "upgrade_required"
  case bufferFull = "buffer_full"
  case rateLimited = "rate_limited"
  case unsupportedMediaType = "unsupported_media_type"
  case deviceForked = "device_forked"
  case epochChanged = "epoch_changed"
  case cursorAhead = "cursor_ahead"
  case historyLost = "history_lost"
  case cursorExpired = "cursor_expired"
  case lostAndExpired = "lost_and_expired"
  case unavailable
  case internalError = "internal_error"

  /// The HTTP status of an answer with it.
  public var status: Int { meaning.status }

  /// The action by which a client can handle it.
  public var action: ProblemAction { meaning.action }

  /// A few words for users.
  public var title: String { meaning.title }

  /// The table of all codes (SPEC.md §9).
  private var meaning: (status: Int, action: ProblemAction, title: String) {
    switch self {
    case .malformedMessage: (400, .fix, "The message is malformed")
    case .limitExceeded: (413, .fix, "The message is too large")
    case .unsupportedCoding: (415, .fix, "The content coding is not supported")
    case .invalidCursor: (400, .fix, "The cursor is invalid")
    case .unauthorized: (401, .fix, "A valid token is needed")
    case .forbidden: (403, .fix, "The token does not allow this")
    case .deviceTaken: (403, .resynchronise, "The device identifier belongs to another user")
    case .cursorRequired: (428, .fix, "The space accepts packets only with a cursor")
    case .storageQuota: (507, .fix, "The storage quota is reached")
    case .writeQuota: (429, .retry, "The daily write quota is reached")
    case .streamQuota: (429, .retry, "Too many event streams are open")
    case .unknownSpace: (404, .fix, "There is no such space")
    case .unknownInvitation: (404, .fix, "There is no such invitation")
    case .notFound: (404, .fix, "There is nothing at this address")
    case .methodNotAllowed: (405, .fix, "The method is not allowed here")
    case .operationRefused: (422, .fix, "The packet contains operations that can never be applied")
    case .schemaConflict: (409, .fix, "The schema does not fit the space")
    case .schemaLosses: (409, .fix, "The schema would drop rules or definitions")
    case .missionConflict: (409, .fix, "The mission conflicts with the published missions")
    case .uploadConflict: (409, .fix, "The upload continues at another offset")
    case .contentMismatch: (422, .fix, "The content is missing or does not match its hash")
    case .uploadQuota: (507, .fix, "The quota of unfinished uploads is reached")
    case .upgradeRequired: (426, .fix, "The space requires a newer client")
    case .bufferFull: (429, .retry, "Too many packets wait for an earlier one")
    case .rateLimited: (429, .retry, "Too many requests")
    case .unsupportedMediaType: (415, .fix, "The body has the wrong media type")
    case .deviceForked: (409, .resynchronise, "Another copy of this device has written")
    case .epochChanged: (409, .resynchronise, "The space has a new epoch")
    case .cursorAhead: (409, .resynchronise, "The cursor is ahead of the space")
    case .historyLost: (409, .resynchronise, "The server lost history that the cursor refers to")
    case .cursorExpired: (410, .resynchronise, "The cursor is older than the history")
    case .lostAndExpired: (410, .resynchronise, "The cursor is too old, and its history was lost")
    case .unavailable: (503, .retry, "The server cannot serve at the moment")
    case .internalError: (500, .retry, "The server failed")
    }
  }
}

/// A problem document (RFC 9457) with Ferry's stable `code` and the action for the client.
public struct Problem: Error, Sendable, Equatable, CustomStringConvertible {
  /// The stable code.
  public let code: ProblemCode
  /// The detail of this occurrence, for users.
  public let detail: String
  /// The operations that can never be applied, in order; of ``ProblemCode/operationRefused`` only.
  public let refusals: [Refusal]
  /// The first existing records that do not fit a new schema, by table and identifier; of
  /// ``ProblemCode/schemaConflict`` only.
  public let violations: [SchemaViolation]
  /// The number of all such records, named or not; no fewer than ``violations``.
  public let violationCount: Int
  /// The first rules and definitions dropped by a new schema, such as `the definition of lists`; of
  /// ``ProblemCode/schemaLosses`` only.
  public let losses: [String]
  /// The number of all such rules and definitions, named or not; no fewer than ``losses``.
  public let lossCount: Int

  /// Creates a problem from the given parts.
  public init(
    _ code: ProblemCode, _ detail: String, refusals: [Refusal] = [],
    violations: [SchemaViolation] = [], violationCount: Int = 0, losses: [String] = [],
    lossCount: Int = 0
  ) {
    self.code = code
    self.detail = detail
    self.refusals = refusals
    self.violations = violations
    self.violationCount = max(violationCount, violations.count)
    self.losses = losses
    self.lossCount = max(lossCount, losses.count)
  }

  /// Returns the problem with another detail.
  package func detailed(_ detail: String) -> Problem {
    Problem(
      code, detail, refusals: refusals, violations: violations, violationCount: violationCount,
      losses: losses, lossCount: lossCount)
  }

  public var description: String { "\(code.title): \(detail)" }
}
