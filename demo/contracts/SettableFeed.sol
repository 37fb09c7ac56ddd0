// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// A price feed with the read functions of Chainlink's AggregatorV3Interface, whose rounds the owner writes. The owner sets the time of a
/// round, so that a feed can be made stale.
contract SettableFeed {
    struct Round {
        int192 answer;
        uint64 updatedAt;
    }

    /// Older rounds are overwritten, so that the state of a demo that runs for weeks does not grow.
    uint80 public constant KEPT_ROUNDS = 4096;

    address public immutable owner;
    uint8 public immutable decimals;
    string public description;
    uint256 public constant version = 4;
    uint80 public latestRound;
    mapping(uint80 => Round) private rounds;

    event AnswerUpdated(int256 indexed current, uint256 indexed roundId, uint256 updatedAt);

    constructor(string memory description_, uint8 decimals_, int256 answer, uint256 updatedAt) {
        owner = msg.sender;
        description = description_;
        decimals = decimals_;
        _set(answer, updatedAt);
    }

    /// `updatedAt` = 0 means the time of the block.
    function set(int256 answer, uint256 updatedAt) external {
        require(msg.sender == owner, "only the owner sets the price");
        _set(answer, updatedAt);
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return getRoundData(latestRound);
    }

    function getRoundData(uint80 roundId) public view returns (uint80, int256, uint256, uint256, uint80) {
        require(roundId != 0 && roundId <= latestRound && latestRound - roundId < KEPT_ROUNDS, "No data present");
        Round memory round = rounds[roundId % KEPT_ROUNDS];
        return (roundId, round.answer, round.updatedAt, round.updatedAt, roundId);
    }

    function latestAnswer() external view returns (int256) {
        return rounds[latestRound % KEPT_ROUNDS].answer;
    }

    function latestTimestamp() external view returns (uint256) {
        return rounds[latestRound % KEPT_ROUNDS].updatedAt;
    }

    function _set(int256 answer, uint256 updatedAt) private {
        uint256 at = updatedAt == 0 ? block.timestamp : updatedAt;
        latestRound += 1;
        rounds[latestRound % KEPT_ROUNDS] = Round(int192(answer), uint64(at));
        emit AnswerUpdated(answer, latestRound, at);
    }
}
