// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./TokenBase.sol";

/// Behaves like Tether on Ethereum: `transfer`, `transferFrom` and `approve` return nothing, and an allowance that is
/// not zero must be set to zero before it can be set to another value.
contract TetherLikeToken is TokenBase {
    constructor(string memory name_, string memory symbol_, uint8 decimals_) TokenBase(name_, symbol_, decimals_) {}

    function approve(address spender, uint256 value) external {
        require(value == 0 || allowance[msg.sender][spender] == 0, "reset the allowance to zero first");
        _approve(spender, value);
    }

    function transfer(address to, uint256 value) external {
        _move(msg.sender, to, value);
    }

    function transferFrom(address from, address to, uint256 value) external {
        _spend(from, to, value);
    }
}
