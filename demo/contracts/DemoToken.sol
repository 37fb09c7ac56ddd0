// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./TokenBase.sol";

/// A plain ERC-20.
contract DemoToken is TokenBase {
    constructor(string memory name_, string memory symbol_, uint8 decimals_) TokenBase(name_, symbol_, decimals_) {}

    function approve(address spender, uint256 value) external returns (bool) {
        _approve(spender, value);
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        _move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        _spend(from, to, value);
        return true;
    }
}
