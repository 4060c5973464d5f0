import FerryProtocol

/// The rules for changes of a space's members (SPEC.md §41); pure.
///
/// ```swift
/// MemberRule(members: 2, admins: 1, former: .admin).fault(of: nil)  // the last admin stays
/// ```
struct MemberRule {
  /// Members of the space, before the change.
  var members: Int64
  /// Members with the role admin.
  var admins: Int64
  /// The role of the user before the change; `nil` for a user who is no member.
  var former: Role?
  /// True if the user accepts an invitation, or creates the space.
  var isInvited = false
  /// Spaces of the user.
  var spaces: Int64 = 0
  /// True if the change is made by a credential with the role, and not by a member.
  var isByCredential = false

  /// Returns the reason why the user cannot get a role, or `nil`.
  ///
  /// - Parameter role: The role; `nil` for the end of the membership.
  func fault(of role: Role?) -> Problem? {
    if former == nil, role != nil {
      if !isInvited, !isByCredential {
        return Problem(.forbidden, "the user is no member; invite him or her")
      }
      guard members < MembersAnswer.countMax else {
        return Problem(
          .storageQuota, "the space has \(members.grouped) members, and no room for more")
      }
      guard spaces < OwnSpaces.countMax else {
        return Problem(
          .storageQuota,
          "the user is a member of \(spaces.grouped) spaces already; leave one of them first")
      }
    }
    if former == .admin, role != .admin, admins == 1, role != nil || members > 1, !isByCredential {
      return Problem(
        .forbidden,
        "the space would have members and no admin; make another member an admin first")
    }
    return nil
  }
}
