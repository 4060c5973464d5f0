extension BinaryInteger {
  /// The number with a comma every three digits: `12,345`.
  package var grouped: String {
    let digits = Array(String(magnitude))
    var result = self < 0 ? "-" : ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index).isMultiple(of: 3) { result += "," }
      result.append(digit)
    }
    return result
  }
}

extension BinaryInteger {
  /// Returns the number with the noun: `1 file`, `2,000 files`.
  ///
  /// - Parameter plural: The plural, if it is not the noun with an `s`.
  package func counted(_ noun: String, _ plural: String? = nil) -> String {
    "\(grouped) \(self == 1 ? noun : plural ?? noun + "s")"
  }
}
