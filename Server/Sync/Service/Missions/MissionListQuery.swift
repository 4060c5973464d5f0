import FerryProtocol

/// The place and the length of a part of a list of missions or bundles.
struct MissionListQuery {
  /// `nil` for the start.
  let after: MissionID?
  let limit: Int

  init(_ query: [String: String]) throws(Problem) {
    let most = MissionPage.countMax
    limit =
      if let text = query["limit"] {
        Int(clamping: try InspectionQuery.number(text, "limit", in: 1...Int64(most)))
      } else { most }
    guard let text = query["after"] else {
      after = nil
      return
    }
    guard let place = MissionID(text) else {
      throw Problem(.malformedMessage, "after is a list's next place")
    }
    after = place
  }
}
