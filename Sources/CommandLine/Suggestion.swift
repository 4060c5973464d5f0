// The word probably meant by a user who mistyped.

import FerryPlatform

extension String {
  /// Returns the distance in insertions, deletions, replacements and swaps of neighbours (optimal
  /// string alignment), over characters.
  func editDistance(to other: String) -> Int {
    let left = Array(self)
    let right = Array(other)
    var beforePrevious: [Int] = []
    var previous = Array(0...right.count)
    for row in 0..<left.count {
      var current = [row + 1]
      for column in 0..<right.count {
        let replaced = previous[column] + (left[row] == right[column] ? 0 : 1)
        var best = Swift.min(replaced, previous[column + 1] + 1, current[column] + 1)
        if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
          best = Swift.min(best, beforePrevious[column - 1] + 1)
        }
        current.append(best)
      }
      (beforePrevious, previous) = (previous, current)
    }
    return previous[right.count]
  }

  /// Returns the candidate that was probably meant. It is the only one with this word as its
  /// beginning, or the nearest one within a third of the length. Ties go to the first.
  func nearest(in candidates: [String]) -> String? {
    let completions = candidates.filter { count >= 2 && $0.begins(with: self) }
    if completions.count == 1 { return completions[0] }
    let distances = candidates.map { (candidate: $0, distance: editDistance(to: $0)) }
    guard let best = distances.min(by: { $0.distance < $1.distance }) else { return nil }
    return best.distance <= Swift.max(1, best.candidate.count / 3) ? best.candidate : nil
  }
}
